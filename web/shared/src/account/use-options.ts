// What the server says about itself before anybody signs in: whether SSO is on, and its version. Asked again every few
// minutes and when the window comes back, so that an open page notices a new version.
import { useQuery } from '@tanstack/react-query';
import { PUBLIC, useApp } from '../app';

export function useOptions() {
  const { account } = useApp();
  return useQuery({
    queryKey: [PUBLIC, 'options'],
    queryFn: account.options,
    refetchInterval: 4 * 60_000,
    refetchOnWindowFocus: 'always',
  });
}
