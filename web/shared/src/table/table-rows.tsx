// The rows of a table: as a grid on a wide screen, as cards on a narrow one.
import { ArrowDown, ArrowUp } from 'lucide-react';
import type { KeyboardEvent, ReactNode } from 'react';
import { Link } from 'wouter';
import { useI18n } from '../i18n/i18n';
import type { Column } from './columns';
import type { DataTableProps } from './data-table';
import type { Selection } from './selection';

interface RowsProps<Row> extends DataTableProps<Row> {
  rows: readonly Row[];
  shown: readonly Column<Row>[];
  selection: Selection<Row>;
}

const CHECKBOX = 'block size-4 accent-accent';
/** An open menu lies above the buttons of the rows below. */
const ACTIONS = 'relative z-10 has-data-[state=open]:z-20';

export function Grid<Row>(props: RowsProps<Row>) {
  const { caption, rows, shown, selection, state, rowKey, rowActions, selectionActions, query } = props;
  const { t } = useI18n();
  const all = rows.every(selection.has);
  return (
    <div
      role="region"
      aria-label={caption}
      // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reachable by keyboard.
      tabIndex={0}
      className="relative overflow-x-auto -outline-offset-2"
    >
      <table
        className={`w-full border-collapse text-sm wrap-break-word transition-opacity ${query.isPlaceholderData ? 'opacity-60' : ''}`}
        aria-busy={query.isPlaceholderData}
      >
        <caption className="sr-only">{caption}</caption>
        <thead>
          <tr className="border-b border-line bg-sunken/60 text-start text-xs text-muted">
            {selectionActions && (
              <th scope="col" className="w-10 ps-4 text-start">
                <input
                  type="checkbox"
                  className={CHECKBOX}
                  aria-label={t('table.selectPage')}
                  checked={all}
                  ref={(box) => {
                    if (box) box.indeterminate = !all && rows.some(selection.has);
                  }}
                  onChange={() => selection.toggleAll(rows)}
                />
              </th>
            )}
            {shown.map((column) => (
              <HeadCell
                key={column.key}
                column={column}
                sort={state.sort}
                onSort={(sort) => state.set({ sort })}
              />
            ))}
            {rowActions && (
              <th scope="col" className="w-12">
                <span className="sr-only">{t('table.actions')}</span>
              </th>
            )}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr
              key={rowKey(row)}
              data-row
              className="relative border-b border-line last:border-b-0 hover:bg-sunken/50 has-checked:bg-accent-soft/40"
            >
              {selectionActions && (
                <td className="relative z-10 ps-4">
                  <RowBox row={row} rowKey={rowKey} selection={selection} />
                </td>
              )}
              {shown.map((column, index) =>
                index === 0 ? (
                  <th
                    key={column.key}
                    scope="row"
                    className={`px-2 py-1.5 text-start font-medium first:ps-4 2xl:px-3 ${column.wrap ? 'min-w-56 wrap-anywhere' : 'whitespace-nowrap'}`}
                  >
                    <Opener {...props} row={row}>
                      <Value>{column.cell(row)}</Value>
                    </Opener>
                  </th>
                ) : (
                  <td
                    key={column.key}
                    className={`h-10 px-2 py-1.5 2xl:px-3 ${column.end ? 'text-end tabular-nums' : ''} ${column.wrap ? 'min-w-56 wrap-anywhere' : 'whitespace-nowrap'}`}
                  >
                    <Value>{column.cell(row)}</Value>
                  </td>
                ),
              )}
              {rowActions && <td className={`${ACTIONS} pe-2 text-end`}>{rowActions(row)}</td>}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface HeadCellProps<Row> {
  column: Column<Row>;
  sort: string;
  onSort: (sort: string) => void;
}

function HeadCell<Row>({ column, sort, onSort }: HeadCellProps<Row>) {
  const look = `px-2 py-2 font-medium whitespace-nowrap first:ps-4 2xl:px-3 ${column.end ? 'text-end' : 'text-start'}`;
  if (column.sort === undefined) {
    return (
      <th scope="col" className={look}>
        {column.label}
      </th>
    );
  }
  const up = sort === column.sort;
  const down = sort === `-${column.sort}`;
  const Icon = up ? ArrowUp : ArrowDown;
  return (
    <th scope="col" className={look} aria-sort={up ? 'ascending' : down ? 'descending' : undefined}>
      <button
        type="button"
        className={`group inline-flex min-h-6 items-center gap-1 rounded hover:text-ink ${column.end ? 'flex-row-reverse' : ''}`}
        onClick={() => onSort(up ? `-${column.sort}` : (column.sort ?? ''))}
      >
        {column.label}
        <Icon
          className={`size-3.5 ${up || down ? 'text-accent' : 'opacity-0 group-hover:opacity-60'}`}
          aria-hidden="true"
        />
      </button>
    </th>
  );
}

export function Cards<Row>(props: RowsProps<Row>) {
  const { caption, rows, shown, selection, rowKey, rowActions, selectionActions, query } = props;
  const [title, ...others] = shown;
  return (
    <ul aria-label={caption} aria-busy={query.isPlaceholderData} className="divide-y divide-line">
      {rows.map((row) => (
        <li key={rowKey(row)} data-row className="relative px-3 py-3 has-checked:bg-accent-soft/40">
          <div className="flex items-start gap-3">
            {selectionActions && (
              <span className="relative z-10 pt-0.5">
                <RowBox row={row} rowKey={rowKey} selection={selection} />
              </span>
            )}
            <div className="min-w-0 flex-1 font-medium">
              <Opener {...props} row={row}>
                <Value>{title?.cell(row)}</Value>
              </Opener>
            </div>
            {rowActions && <span className={`${ACTIONS} -my-1`}>{rowActions(row)}</span>}
          </div>
          <dl className="mt-1.5 grid grid-cols-2 gap-x-3 gap-y-1.5 text-sm">
            {others.map((column) => {
              const value = column.cell(row);
              return isEmpty(value) ? null : (
                <div key={column.key} className={`min-w-0 ${column.wrap ? 'order-last col-span-2' : ''}`}>
                  <dt className="text-xs text-muted">{column.label}</dt>
                  <dd className="min-w-0">{value}</dd>
                </div>
              );
            })}
          </dl>
        </li>
      ))}
    </ul>
  );
}

function isEmpty(value: ReactNode): boolean {
  return value === null || value === undefined || value === '';
}

function Value({ children }: { children: ReactNode }) {
  return isEmpty(children) ? <span className="text-muted">–</span> : children;
}

interface RowBoxProps<Row> {
  row: Row;
  rowKey: (row: Row) => string;
  selection: Selection<Row>;
}

function RowBox<Row>({ row, rowKey, selection }: RowBoxProps<Row>) {
  const { t } = useI18n();
  return (
    <input
      type="checkbox"
      className={CHECKBOX}
      aria-label={t('table.select', { name: rowKey(row) })}
      checked={selection.has(row)}
      onChange={() => selection.toggle(row)}
    />
  );
}

interface OpenerProps<Row> extends RowsProps<Row> {
  row: Row;
  children: ReactNode;
}

/** What the row is, and the way into it: the whole row answers a click, the name answers the keyboard. */
function Opener<Row>({ row, href, onOpen, selection, selectionActions, children }: OpenerProps<Row>) {
  const look = 'block w-full rounded text-start after:absolute after:inset-0 hover:text-accent-strong';
  const keys = (event: KeyboardEvent<HTMLElement>) => {
    if (event.key === 'x' && selectionActions) selection.toggle(row);
    if (event.key !== 'ArrowDown' && event.key !== 'ArrowUp') return;
    event.preventDefault();
    const here = event.currentTarget.closest('[data-row]');
    const next = event.key === 'ArrowDown' ? here?.nextElementSibling : here?.previousElementSibling;
    next?.querySelector<HTMLElement>('[data-opener]')?.focus();
  };
  if (href) {
    return (
      <Link href={href(row)} className={look} onKeyDown={keys} data-opener>
        {children}
      </Link>
    );
  }
  if (onOpen) {
    return (
      <button type="button" className={look} onClick={() => onOpen(row)} onKeyDown={keys} data-opener>
        {children}
      </button>
    );
  }
  return children;
}
