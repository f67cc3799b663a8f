// What a table shows, kept in the address: search, filters, order, page. A link to it, a reload and the back button all
// lead to the same rows.
import { useCallback, useMemo } from 'react';
import { useSearchParams } from 'wouter';

export const PAGE_SIZES = [25, 50, 100, 200] as const;
const DEFAULT_SIZE = 50;

export interface TableState {
  q: string;
  sort: string;
  page: number;
  size: number;
  /** By name; what is not set is absent. */
  filters: Readonly<Record<string, string>>;
  /** Anything but a change of page starts again at the first one, and a search at the newest rows. */
  set: (changes: Readonly<Record<string, string | number | null>>) => void;
  clear: () => void;
  narrowed: boolean;
}

export function useTableState(filterNames: readonly string[], defaultSort = ''): TableState {
  const [params, setParams] = useSearchParams();
  const names = filterNames.join(' ');

  const set = useCallback(
    (changes: Readonly<Record<string, string | number | null>>) => {
      setParams(
        (before) => {
          const next = new URLSearchParams(before);
          if (!('page' in changes)) {
            next.delete('page');
            next.delete('search_before');
          }
          for (const [name, value] of Object.entries(changes)) {
            if (value === null || value === '') next.delete(name);
            else next.set(name, String(value));
          }
          return next;
        },
        { replace: !('page' in changes) },
      );
    },
    [setParams],
  );

  return useMemo(() => {
    const filters: Record<string, string> = {};
    for (const name of names === '' ? [] : names.split(' ')) {
      const value = params.get(name);
      if (value !== null && value !== '') filters[name] = value;
    }
    const q = params.get('q') ?? '';
    const size = Number(params.get('size'));
    return {
      q,
      sort: params.get('sort') ?? defaultSort,
      page: Math.max(1, Math.trunc(Number(params.get('page'))) || 1),
      size: (PAGE_SIZES as readonly number[]).includes(size) ? size : DEFAULT_SIZE,
      filters,
      set,
      clear: () => set({ q: null, ...Object.fromEntries(Object.keys(filters).map((name) => [name, null])) }),
      narrowed: q !== '' || Object.keys(filters).length > 0,
    };
  }, [params, names, defaultSort, set]);
}

/** One more choice kept in the address, such as an open tab or panel. */
export function useAddressValue(name: string): [string | null, (value: string | null) => void] {
  const [params, setParams] = useSearchParams();
  const set = useCallback(
    (value: string | null) => {
      setParams(
        (before) => {
          const next = new URLSearchParams(before);
          if (value === null) next.delete(name);
          else next.set(name, value);
          return next;
        },
        { replace: true },
      );
    },
    [name, setParams],
  );
  return [params.get(name), set];
}
