// What the fleet used: a chart over time, and the same sum split by model, provider, instance, person or department.
import { RelativeTime } from '@tidepool/shared/i18n/time';
import { lazyPart } from '@tidepool/shared/lazy-part';
import { Page } from '@tidepool/shared/shell/page';
import { saveFile, toCsv } from '@tidepool/shared/table/csv';
import { useAddressValue } from '@tidepool/shared/table/table-state';
import { Button } from '@tidepool/shared/ui/button';
import { Chart } from '@tidepool/shared/ui/chart/chart';
import { ShareBars } from '@tidepool/shared/ui/chart/share-bars';
import { Notice } from '@tidepool/shared/ui/notice';
import { Panel } from '@tidepool/shared/ui/panel';
import { Segmented } from '@tidepool/shared/ui/segmented';
import { SelectChip } from '@tidepool/shared/ui/select';
import { EmptyState } from '@tidepool/shared/ui/states';
import { Download } from 'lucide-react';
import { Suspense, useState } from 'react';
import { Link } from 'wouter';
import { useFormat } from '../format';
import { useText } from '../messages';
import { lastDays, useStats } from '../overview/queries';
import { oneOf } from '../records';
import { Department } from '../usage/department';
import { DepartmentsSince, UserName } from '../usage/holder';
import { SpendDays } from '../usage/spend-days';

const Breakdown = lazyPart(() => import('../usage/breakdown'));

const RANGES = ['1', '7', '30', '90'] as const;
const GROUPS = ['model', 'provider', 'instance', 'user', 'department'] as const;
const MEASURES = ['cost_usd', 'tokens', 'calls'] as const;

export default function Usage() {
  const { t } = useText();
  const [range, setRange] = useAddressValue('days');
  const days = oneOf(range ?? undefined, RANGES) ?? '30';
  return (
    <Page
      wide
      title={t('nav.usage')}
      action={
        <Segmented
          legend={t('metrics.range')}
          compact
          value={days}
          onChange={setRange}
          options={RANGES.map((value) => ({ value, label: t(`usage.days.${value}`) }))}
        />
      }
    >
      <div className="grid gap-4 xl:grid-cols-5">
        <div className="min-w-0 xl:col-span-3">
          <OverTime days={Number(days)} />
        </div>
        <div className="min-w-0 xl:col-span-2">
          <Split days={Number(days)} />
        </div>
        <div className="min-w-0 xl:col-span-5">
          <Suspense fallback={null}>
            <Breakdown />
          </Suspense>
        </div>
        <div className="min-w-0 xl:col-span-5">
          <SpendDays />
        </div>
      </div>
    </Page>
  );
}

function OverTime({ days }: { days: number }) {
  const { t, number } = useText();
  const format = useFormat();
  const [wanted, setMeasure] = useAddressValue('show');
  const measure = oneOf(wanted ?? undefined, MEASURES) ?? 'cost_usd';
  const stats = useStats('date', days);
  const write = { cost_usd: format.money, tokens: format.short, calls: number }[measure];
  return (
    <Panel
      title={t('usage.overTime')}
      query={stats}
      action={
        <Segmented
          legend={t('usage.measure')}
          compact
          value={measure}
          onChange={setMeasure}
          options={MEASURES.map((value) => ({ value, label: t(`usage.${value}`) }))}
        />
      }
      empty={{
        when: ({ stats: rows }) => rows.length === 0,
        show: <EmptyState title={t('usage.none')}>{t('usage.noneText')}</EmptyState>,
      }}
    >
      {({ stats: rows, stale, as_of }) => {
        const byDay = new Map(rows.map((row) => [row.key, row[measure]]));
        const dates = lastDays(days);
        const sum = (key: (typeof MEASURES)[number]) => rows.reduce((total, row) => total + row[key], 0);
        return (
          <div className="space-y-5">
            {stale && (
              <Notice tone="warning">
                {t('overview.stale')} <RelativeTime at={as_of} />
              </Notice>
            )}
            <dl className="flex flex-wrap gap-x-10 gap-y-3">
              <Total label={t('usage.cost_usd')} value={format.money(sum('cost_usd'))} />
              <Total label={t('usage.tokens')} value={format.short(sum('tokens'))} />
              <Total label={t('usage.calls')} value={number(sum('calls'))} />
              <Cached
                known={rows.reduce((total, row) => total + row.known_input_tokens, 0)}
                read={rows.reduce((total, row) => total + row.cache_read_tokens, 0)}
              />
            </dl>
            <Chart
              label={t('usage.overTime')}
              kind="bar"
              height={260}
              points={dates.map((day) => ({ label: format.day(day) }))}
              series={[
                {
                  id: measure,
                  label: t(`usage.${measure}`),
                  values: dates.map((day) => byDay.get(day) ?? 0),
                },
              ]}
              format={write}
            />
          </div>
        );
      }}
    </Panel>
  );
}

function Total({ label, value }: { label: string; value: string }) {
  return (
    <div>
      <dd className="text-2xl font-semibold tracking-tight tabular-nums">{value}</dd>
      <dt className="text-sm text-muted">{label}</dt>
    </div>
  );
}

/** How much of the input providers had in their caches, of the requests that say so; nothing where none does. */
function Cached({ known, read }: { known: number; read: number }) {
  const { t } = useText();
  const format = useFormat();
  if (known === 0) return null;
  const of = t('usage.cachedOf', { read: format.short(read), known: format.short(known) });
  return (
    <div>
      <dd className="text-2xl font-semibold tracking-tight tabular-nums">
        {format.percent((100 * read) / known)}
      </dd>
      <dt className="text-sm text-muted">
        {t('usage.cached')}
        <span className="block max-w-56 text-xs">{of}</span>
      </dt>
    </div>
  );
}

function Split({ days }: { days: number }) {
  const { t, number } = useText();
  const format = useFormat();
  const [wanted, setGroup] = useAddressValue('by');
  const group = oneOf(wanted ?? undefined, GROUPS) ?? 'model';
  const [department, setDepartment] = useState<string | null>(null);
  const stats = useStats(group, days);
  const nameOf = (row: {
    key: string;
    instance?: string | null;
    unassigned: boolean;
    former_employee?: boolean | null;
  }) => {
    if (row.unassigned) return t('usage.unassigned');
    if (group === 'user') return <UserName email={row.key} former={row.former_employee} />;
    return row.instance ?? (row.key || t('usage.noDepartment'));
  };
  const linkOf = (key: string) =>
    group === 'instance'
      ? `/instances?open=${encodeURIComponent(key)}`
      : group === 'user'
        ? `/users?q=${encodeURIComponent(key)}`
        : group === 'model'
          ? `/requests?model=${encodeURIComponent(key)}`
          : null;
  return (
    <Panel
      title={t('usage.split')}
      query={stats}
      action={
        <span className="flex items-center gap-1">
          <SelectChip
            label={t('usage.split')}
            value={group}
            onChange={(event) => setGroup(event.target.value)}
            choices={GROUPS.map((value) => ({ value, label: t(`usage.by.${value}`) }))}
          />
          {stats.data && (
            <Button
              look="quiet"
              size="small"
              onClick={() =>
                saveFile(
                  `usage-by-${group}.csv`,
                  toCsv(
                    [group, 'calls', 'tokens', 'cost_usd', 'known_input_tokens', 'cache_read_tokens'],
                    stats.data.stats.map((row) => [
                      row.unassigned ? t('usage.unassigned') : row.key,
                      row.calls,
                      row.tokens,
                      row.cost_usd,
                      row.known_input_tokens,
                      row.cache_read_tokens,
                    ]),
                  ),
                )
              }
            >
              <Download className="size-4" aria-hidden="true" />
              CSV
            </Button>
          )}
        </span>
      }
    >
      {({ stats: rows, departments_since }) => (
        <div className="space-y-5">
          <DepartmentsSince at={departments_since} />
          {rows.length === 0 ? (
            <EmptyState title={t('usage.none')}>{t('usage.noneText')}</EmptyState>
          ) : (
            <ShareBars
              rows={rows.slice(0, 50).map((row) => {
                const link = linkOf(row.key);
                return {
                  id: row.unassigned ? 'unassigned' : `of ${row.key}`,
                  label:
                    link && row.key ? (
                      <Link href={link} className="rounded hover:text-accent">
                        {nameOf(row)}
                      </Link>
                    ) : group === 'department' && row.key ? (
                      <button
                        type="button"
                        className="rounded hover:text-accent"
                        onClick={() => setDepartment(row.key)}
                      >
                        {nameOf(row)}
                      </button>
                    ) : (
                      nameOf(row)
                    ),
                  value: row.cost_usd,
                  text: format.money(row.cost_usd),
                  note: `${t('overview.callsCount', { count: number(row.calls) })} · ${format.short(row.tokens)}`,
                };
              })}
            />
          )}
          {department !== null && <Department name={department} onClose={() => setDepartment(null)} />}
        </div>
      )}
    </Panel>
  );
}
