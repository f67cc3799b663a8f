// The table of both apps: rows come page by page from the server; search, order, filters and page stand in the address.
// Under 640 px the same columns are drawn as cards, since a table that scrolls sideways hides what matters.
import type { UseQueryResult } from '@tanstack/react-query';
import { useDeferredValue, type ReactNode } from 'react';
import { useI18n } from '../i18n/i18n';
import { exact } from '../i18n/time';
import { ErrorBoundary } from '../ui/error-boundary';
import { EmptyState, ErrorState, Skeleton, StaleBar } from '../ui/states';
import { Button } from '../ui/button';
import { useMedia } from '../use-media';
import { ColumnMenu, useColumns, type Column } from './columns';
import { saveFile, toCsv } from './csv';
import { Pager } from './pager';
import { useSelection, type Selection } from './selection';
import { ExportButton, SearchBox, SelectionBar } from './table-bar';
import { Cards, Grid } from './table-rows';
import type { TableState } from './table-state';

export interface ListPage<Row> {
  list: readonly Row[];
  total: number;
  total_is_minimum?: boolean;
  /** A search looked through rows since then only; null when there are no older ones. */
  searched_since?: string | null;
}

/** One page of the rows that the table shows; `size` may differ from the table's, for exports. */
export type FetchPage<Row> = (page: number, size: number) => Promise<ListPage<Row>>;

export interface DataTableProps<Row> {
  /** Names the table in the person's stored choices and in files. */
  id: string;
  caption: string;
  columns: readonly Column<Row>[];
  query: UseQueryResult<ListPage<Row>>;
  state: TableState;
  rowKey: (row: Row) => string;
  /** Where a row leads; a handler opens it in place. */
  onOpen?: (row: Row) => void;
  href?: (row: Row) => string;
  search?: string;
  filters?: ReactNode;
  /** At the end of each row. */
  rowActions?: (row: Row) => ReactNode;
  /** Buttons for the chosen rows; with it rows can be chosen. */
  selectionActions?: (selection: Selection<Row>) => ReactNode;
  /** With it everything that matches can be exported, and chosen. */
  fetchPage?: FetchPage<Row>;
  /** Stands in the place of "export" where the server writes the file. */
  exporter?: () => Promise<unknown>;
  empty: { title: string; text: ReactNode };
}

const EXPORT_SIZE = 200;
/** A file or a batch of more rows than this is asked for in parts, by narrowing the list. */
const EXPORT_MOST = 20_000;

async function fetchAll<Row>(fetchPage: FetchPage<Row>): Promise<Row[]> {
  const rows: Row[] = [];
  for (let page = 1; rows.length < EXPORT_MOST; page += 1) {
    const { list } = await fetchPage(page, EXPORT_SIZE);
    rows.push(...list);
    if (list.length < EXPORT_SIZE) break;
  }
  return rows;
}

export function DataTable<Row>(props: DataTableProps<Row>) {
  const { id, columns, query, state, rowKey, search, filters, selectionActions, fetchPage, exporter } = props;
  const { t } = useI18n();
  const { shown, toggle } = useColumns(id, columns);
  const selection = useSelection(rowKey);
  const narrow = useMedia('(max-width: 639px)');
  const total = query.data?.total ?? 0;

  const writeCsv = async () => {
    if (exporter) return exporter();
    if (!fetchPage) return;
    const exported = columns.filter((column) => column.csv);
    const rows = await fetchAll(fetchPage);
    saveFile(
      `${id}.csv`,
      toCsv(
        exported.map((column) => column.label),
        rows.map((row) => exported.map((column) => column.csv?.(row))),
      ),
    );
  };

  return (
    <div className="space-y-3">
      {selectionActions && selection.rows.length > 0 ? (
        <SelectionBar
          selection={selection}
          total={total}
          onAll={fetchPage && (async () => selection.replace(await fetchAll(fetchPage)))}
        >
          {selectionActions(selection)}
        </SelectionBar>
      ) : (
        <div className="flex flex-wrap items-center gap-2">
          {search !== undefined && <SearchBox state={state} label={search} />}
          {filters}
          {state.narrowed && (
            <Button look="quiet" size="small" onClick={state.clear}>
              {t('table.clear')}
            </Button>
          )}
          <div className="ms-auto flex items-center gap-1">
            {!narrow && columns.length > 2 && (
              <ColumnMenu columns={columns} shown={shown} onToggle={toggle} />
            )}
            {(exporter ?? fetchPage) && <ExportButton run={writeCsv} />}
          </div>
        </div>
      )}
      <div className="overflow-hidden rounded-xl border border-line bg-surface shadow-card">
        <ErrorBoundary
          fallback={(reset) => (
            <Padded>
              <ErrorState error={null} onRetry={reset} />
            </Padded>
          )}
        >
          <Body {...props} shown={shown} selection={selection} narrow={narrow} />
        </ErrorBoundary>
      </div>
      {query.data?.searched_since && <SearchedSince at={query.data.searched_since} state={state} />}
      {query.data && total > 0 && <Pager state={state} total={total} atLeast={query.data.total_is_minimum} />}
    </div>
  );
}

interface BodyProps<Row> extends DataTableProps<Row> {
  shown: readonly Column<Row>[];
  selection: Selection<Row>;
  narrow: boolean;
}

function Body<Row>(props: BodyProps<Row>) {
  const { query, state, empty, narrow } = props;
  const { t } = useI18n();
  const retry = () => void query.refetch();
  // The first rows are drawn in small steps, between which the page goes on answering.
  const drawn = useDeferredValue(query.data !== undefined);
  if (query.data === undefined || !drawn) {
    return (
      <Padded>
        {query.isError ? <ErrorState error={query.error} onRetry={retry} /> : <Skeleton lines={8} />}
      </Padded>
    );
  }
  const rows = query.data.list;
  return (
    <>
      {query.isError && (
        <div className="px-4 pt-3">
          <StaleBar since={query.dataUpdatedAt} busy={query.isFetching} onRetry={retry} />
        </div>
      )}
      {rows.length === 0 ? (
        <Padded>
          {state.narrowed || state.page > 1 ? (
            <EmptyState title={t('table.noMatch')}>
              <button
                type="button"
                className="min-h-6 rounded font-medium text-accent hover:underline"
                onClick={() => (state.page > 1 ? state.set({ page: 1 }) : state.clear())}
              >
                {t(state.page > 1 ? 'table.firstPage' : 'table.clear')}
              </button>
            </EmptyState>
          ) : (
            <EmptyState title={empty.title}>{empty.text}</EmptyState>
          )}
        </Padded>
      ) : narrow ? (
        <Cards {...props} rows={rows} />
      ) : (
        <Grid {...props} rows={rows} />
      )}
    </>
  );
}

/** How far back a search came, and a way to go on from there. */
function SearchedSince({ at, state }: { at: string; state: TableState }) {
  const { t, locale } = useI18n();
  return (
    <div role="status" className="flex flex-wrap items-center gap-x-3 gap-y-1 text-sm text-muted">
      {t('table.searchedSince', { time: exact(new Date(at).getTime(), locale) })}
      <Button size="small" onClick={() => state.set({ search_before: at })}>
        {t('table.searchFurther')}
      </Button>
    </div>
  );
}

function Padded({ children }: { children: ReactNode }) {
  return <div className="px-5 py-6">{children}</div>;
}
