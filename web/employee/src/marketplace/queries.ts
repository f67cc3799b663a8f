// The marketplace's questions to the server.
import { keepPreviousData, useQuery, useQueryClient } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { api } from '../api';

export const INSTALLS = ['installs'];
export type ItemType = 'skill' | 'role_pack' | 'config';

export function useItems(type: ItemType | '', q: string) {
  return useQuery({
    queryKey: ['marketplace', type, q],
    placeholderData: keepPreviousData,
    queryFn: async () => {
      const query = { page_size: 200, ...(type && { type }), ...(q && { q }) };
      return (await unwrap(api.GET('/marketplace/items', { params: { query } }))).list;
    },
  });
}

export type Item = NonNullable<ReturnType<typeof useItems>['data']>[number];

export function useItem(id: string) {
  return useQuery({
    queryKey: ['marketplace', 'item', id],
    queryFn: () => unwrap(api.GET('/marketplace/items/{id}', { params: { path: { id } } })),
  });
}

export type ItemDetail = NonNullable<ReturnType<typeof useItem>['data']>;

/** While something is on its way, it is asked for every second. */
export function useInstalls() {
  return useQuery({
    queryKey: INSTALLS,
    queryFn: async () =>
      (await unwrap(api.GET('/me/installs', { params: { query: { page_size: 200 } } }))).list,
    refetchInterval: ({ state }) =>
      state.data?.some(
        (one) => one.state === 'pending' || one.state === 'installing' || one.state === 'removing',
      )
        ? 1000
        : false,
  });
}

export type Install = NonNullable<ReturnType<typeof useInstalls>['data']>[number];

export function useRefreshInstalls() {
  const queries = useQueryClient();
  return () => void queries.invalidateQueries({ queryKey: INSTALLS });
}
