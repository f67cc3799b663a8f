// The own instances and today's sums, shared by the pages through the query cache.
import { useQuery } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { api } from './api';

export const INSTANCES = ['instances'];
export const SUMMARY = ['usage', 'summary'];

export function useInstances() {
  return useQuery({
    queryKey: INSTANCES,
    queryFn: async () => (await unwrap(api.GET('/me/instances'))).instances,
    refetchInterval: 60_000,
  });
}

/** `after`: the chat page asks for the sums when the list has come, not beside it. */
export function useSummary(after = true) {
  return useQuery({
    queryKey: SUMMARY,
    queryFn: () => unwrap(api.GET('/me/usage/summary')),
    enabled: after,
  });
}

export type Instance = NonNullable<ReturnType<typeof useInstances>['data']>[number];
