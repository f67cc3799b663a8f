// What servers and professions set for their assistants, shared by the pages that show or change it.
import { useQuery } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { api } from '../api';

export function useServerLimits(id: string) {
  return useQuery({
    queryKey: ['cell', 'server', id],
    queryFn: () => unwrap(api.GET('/servers/{id}/limits', { params: { path: { id } } })),
  });
}

export const readProfessionLimits = (id: string) =>
  unwrap(api.GET('/professions/{id}/limits', { params: { path: { id } } }));

/** Nothing is asked for without an id. */
export function useProfessionLimits(id: string | undefined) {
  return useQuery({
    queryKey: ['cell', 'profession', id],
    queryFn: () => readProfessionLimits(id ?? ''),
    enabled: id !== undefined,
  });
}
