// A table's rows, asked for page by page as its state says; while the next page comes, the last one stays.
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import type { ListPage } from '@tidepool/shared/table/data-table';
import type { TableState } from '@tidepool/shared/table/table-state';

export interface Paging {
  q?: string;
  sort?: string;
  page: number;
  page_size: number;
}

export function useList<Row>(
  root: string,
  state: TableState,
  fetch: (paging: Paging, filters: TableState['filters']) => Promise<ListPage<Row>>,
) {
  const { q, sort, page, size, filters } = state;
  const fetchPage = (at: number, count: number) =>
    fetch({ q: q || undefined, sort: sort || undefined, page: at, page_size: count }, filters);
  const query = useQuery({
    queryKey: [root, 'list', q, sort, page, size, filters],
    queryFn: () => fetchPage(page, size),
    placeholderData: keepPreviousData,
  });
  return { query, fetchPage };
}
