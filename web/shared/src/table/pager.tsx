// Where one is in a long list, and the way through it.
import { ChevronLeft, ChevronRight } from 'lucide-react';
import { useI18n } from '../i18n/i18n';
import { SelectChip } from '../ui/select';
import { PAGE_SIZES, type TableState } from './table-state';

interface PagerProps {
  state: TableState;
  total: number;
  /** There are at least so many; counting all of them would cost too much. */
  atLeast?: boolean;
}

const STEP =
  'flex size-9 items-center justify-center rounded-lg border border-control/60 bg-surface hover:border-control disabled:opacity-40';

export function Pager({ state, total, atLeast = false }: PagerProps) {
  const { t, number } = useI18n();
  const pages = Math.max(1, Math.ceil(total / state.size));
  const from = total === 0 ? 0 : (state.page - 1) * state.size + 1;
  const to = Math.min(total, state.page * state.size);
  const last = state.page >= pages && !atLeast;
  return (
    <div className="flex flex-wrap items-center gap-2 text-sm text-muted">
      <span className="me-auto tabular-nums" aria-live="polite">
        {t('table.range', {
          from: number(from),
          to: number(to),
          total: `${number(total)}${atLeast ? '+' : ''}`,
        })}
      </span>
      {total > (PAGE_SIZES[0] as number) && (
        <SelectChip
          label={t('table.pageSize')}
          value={undefined}
          defaultValue={state.size}
          key={state.size}
          onChange={(event) => state.set({ size: event.target.value })}
          choices={PAGE_SIZES.map((size) => ({ value: String(size), label: t('table.perPage', { size }) }))}
        />
      )}
      {(pages > 1 || state.page > 1) && (
        <nav aria-label={t('table.pages')} className="flex items-center gap-1.5">
          <button
            type="button"
            className={STEP}
            disabled={state.page <= 1}
            aria-label={t('table.previous')}
            onClick={() => state.set({ page: state.page - 1 })}
          >
            <ChevronLeft className="size-4" aria-hidden="true" />
          </button>
          <span className="px-1 tabular-nums">
            {number(state.page)} / {number(pages)}
            {atLeast && '+'}
          </span>
          <button
            type="button"
            className={STEP}
            disabled={last}
            aria-label={t('table.next')}
            onClick={() => state.set({ page: state.page + 1 })}
          >
            <ChevronRight className="size-4" aria-hidden="true" />
          </button>
        </nav>
      )}
    </div>
  );
}
