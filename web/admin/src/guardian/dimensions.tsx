// The guardian's dimensions as tiles, and the events of the chosen one.
import { useQuery } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { DIMENSIONS, type Dimension } from '@tidepool/shared/api/registry.gen';
import { RelativeTime } from '@tidepool/shared/i18n/time';
import type { Column } from '@tidepool/shared/table/columns';
import { DataTable } from '@tidepool/shared/table/data-table';
import { useTableState } from '@tidepool/shared/table/table-state';
import { Status, type Tone } from '@tidepool/shared/ui/badge';
import { useMemo } from 'react';
import { api } from '../api';
import { useFormat } from '../format';
import { useList } from '../lists';
import { useText, type Key } from '../messages';
import { FilterChip } from '../parts/filter-chip';
import { QueryState } from '../parts/query-state';
import { oneOf, type GuardianEvent, type GuardianStats } from '../records';

const TONES: Record<GuardianStats['dimensions'][number]['status'], Tone> = {
  healthy: 'good',
  warning: 'warn',
  abnormal: 'bad',
  unknown: 'none',
};
const STATUSES = ['success', 'failed'] as const;
const keyOf = (one: GuardianEvent) => String(one.id);

/** A dimension that this version does not know is called as the server calls it. */
function nameOf(dimension: string, label: string, t: (key: Key) => string): string {
  const known: readonly string[] = DIMENSIONS;
  return known.includes(dimension) ? t(`guardian.${dimension as Dimension}`) : label;
}

export function Dimensions() {
  const stats = useQuery({
    queryKey: ['guardian', 'stats'],
    queryFn: () => unwrap(api.GET('/guardian/stats')),
    retry: false,
  });
  return <QueryState query={stats}>{(data) => <Loaded stats={data} />}</QueryState>;
}

function Loaded({ stats }: { stats: GuardianStats }) {
  const { t, number } = useText();
  const format = useFormat();
  const state = useTableState(['dimension', 'status', 'target_id']);
  const { query, fetchPage } = useList('guardian', state, (paging, { dimension, status, target_id }) =>
    unwrap(
      api.GET('/guardian/events', {
        params: { query: { ...paging, dimension, target_id, status: oneOf(status, STATUSES) } },
      }),
    ),
  );
  const columns = useMemo<Column<GuardianEvent>[]>(
    () => [
      {
        key: 'problem',
        label: t('guardian.problem'),
        wrap: true,
        csv: (one) => one.problem,
        cell: (one) => one.problem || t('guardian.noProblem'),
      },
      {
        key: 'status',
        label: t('tasks.status'),
        csv: (one) => one.status,
        cell: (one) => (
          <Status tone={one.status === 'success' ? 'good' : 'bad'}>{t(`guardian.${one.status}`)}</Status>
        ),
      },
      {
        key: 'dimension',
        label: t('guardian.dimension'),
        csv: (one) => one.dimension,
        cell: (one) => nameOf(one.dimension, one.dimension, t),
      },
      {
        key: 'target',
        label: t('audit.target'),
        csv: (one) => one.target_id,
        cell: (one) => one.target_id,
      },
      {
        key: 'action',
        label: t('guardian.action'),
        wrap: true,
        csv: (one) => one.action_taken,
        cell: (one) => one.action_taken,
      },
      {
        key: 'time',
        label: t('requests.time'),
        csv: (one) => one.created_at,
        cell: (one) => <RelativeTime at={one.created_at} />,
      },
    ],
    [t],
  );
  return (
    <div className="space-y-6">
      <p className="text-sm text-muted">
        {stats.today.success_rate == null
          ? t('guardian.noneToday')
          : t('guardian.today', {
              total: number(stats.today.total_events),
              failed: number(stats.today.failed),
              rate: format.percent(stats.today.success_rate),
            })}
      </p>
      <ul className="grid gap-3 sm:grid-cols-2 lg:grid-cols-3 2xl:grid-cols-5">
        {stats.dimensions.map((one) => (
          <li key={one.dimension}>
            <button
              type="button"
              aria-pressed={state.filters.dimension === one.dimension}
              onClick={() =>
                state.set({ dimension: state.filters.dimension === one.dimension ? null : one.dimension })
              }
              className="flex h-full w-full flex-col rounded-xl border border-line bg-surface p-4 text-start shadow-card hover:border-control aria-pressed:border-accent aria-pressed:bg-accent-soft"
            >
              <span className="flex items-start justify-between gap-2 text-sm">
                <span className="font-medium">{nameOf(one.dimension, one.label, t)}</span>
                <Status tone={TONES[one.status]}>{t(`guardian.state.${one.status}`)}</Status>
              </span>
              <span className="mt-2 block text-sm text-muted">
                {t('guardian.checks', { total: number(one.today_total), failed: number(one.today_failed) })}
                <br />
                {one.last_check_at ? <RelativeTime at={one.last_check_at} /> : t('overview.neverRan')}
              </span>
            </button>
          </li>
        ))}
      </ul>
      <DataTable
        id="guardian"
        caption={t('guardian.events')}
        columns={columns}
        query={query}
        state={state}
        rowKey={keyOf}
        filters={
          <>
            <FilterChip
              state={state}
              name="status"
              label={t('tasks.status')}
              choices={[
                { value: 'success', label: t('guardian.success') },
                { value: 'failed', label: t('guardian.failed') },
              ]}
            />
            {state.filters.target_id && (
              <FilterChip state={state} name="target_id" label={t('audit.target')} choices={[]} />
            )}
          </>
        }
        fetchPage={fetchPage}
        empty={{ title: t('guardian.none'), text: t('guardian.noneText') }}
      />
    </div>
  );
}
