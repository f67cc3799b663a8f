// What the server says about itself before anybody signs in: whether SSO is on, and its version. Asked again every few
// minutes and when the window comes back, so that an open page notices a new version.
import { queryOptions, useQuery } from '@tanstack/react-query';
import { PUBLIC, useApp, type AccountApi } from '../app';

export function optionsQuery(account: AccountApi) {
  return queryOptions({
    queryKey: [PUBLIC, 'options'],
    queryFn: account.options,
    refetchInterval: 4 * 60_000,
    refetchOnWindowFocus: 'always',
  });
}

export function useOptions() {
  const { account } = useApp();
  return useQuery(optionsQuery(account));
}
