// The usage page's questions to the server.
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { api } from '../api';

export function useLastDays() {
  return useQuery({ queryKey: ['usage', 'last-days'], queryFn: () => unwrap(api.GET('/me/usage')) });
}

/** Oldest first, every day of the last 30. */
export function useDaily(instance: string) {
  return useQuery({
    queryKey: ['usage', 'daily', instance],
    placeholderData: keepPreviousData,
    queryFn: async () => {
      const query = { days: 30, fill: true, ...(instance && { instance_id: instance }) };
      const answer = await unwrap(api.GET('/me/usage/daily', { params: { query } }));
      return { ...answer, daily: answer.daily.toReversed() };
    },
  });
}

export const LOG_SIZE = 20;

export type LogStatus = '' | 'success' | 'error';

/** Which requests; an empty text is any. */
export interface LogFilter {
  instance: string;
  status: LogStatus;
}

export function useLog(filter: LogFilter, page: number) {
  return useQuery({
    queryKey: ['usage', 'logs', filter, page],
    placeholderData: keepPreviousData,
    queryFn: () => log(filter, page, LOG_SIZE),
  });
}

export function log({ instance, status }: LogFilter, page: number, size: number) {
  const query = { page, size, ...(instance && { instance_id: instance }), ...(status && { status }) };
  return unwrap(api.GET('/me/usage/logs', { params: { query } }));
}

export type LogEntry = Awaited<ReturnType<typeof log>>['logs'][number];
