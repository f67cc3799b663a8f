// The small cards of the overview. Each leads to the list behind its number.
import type { UseQueryResult } from '@tanstack/react-query';
import { RelativeTime } from '@tidepool/shared/i18n/time';
import { Status } from '@tidepool/shared/ui/badge';
import { ShareBars } from '@tidepool/shared/ui/chart/share-bars';
import { Panel } from '@tidepool/shared/ui/panel';
import { EmptyState, ErrorState, Skeleton, StaleBar } from '@tidepool/shared/ui/states';
import { ArrowRight } from 'lucide-react';
import { useId, type ReactNode } from 'react';
import { Link } from 'wouter';
import { useFormat } from '../format';
import { useMay } from '../me';
import { useText } from '../messages';
import { QueryState } from '../parts/query-state';
import { useEmployeeCounts, useLastSelfHeal, useProfessionStock, useStats, useTaskCounts } from './queries';

interface StatCardProps<Data> {
  title: string;
  href: string;
  query: UseQueryResult<Data>;
  children: (data: Data) => ReactNode;
}

function StatCard<Data>({ title, href, query, children }: StatCardProps<Data>) {
  const id = useId();
  return (
    <section
      aria-labelledby={id}
      className="relative min-w-0 rounded-xl border border-line bg-surface p-5 shadow-card has-[a:hover]:border-control"
    >
      <h2 id={id} className="mb-2 text-sm font-medium text-muted">
        <Link href={href} className="group flex items-center gap-1.5 rounded after:absolute after:inset-0">
          {title}
          <ArrowRight className="size-3.5 opacity-0 group-hover:opacity-100" aria-hidden="true" />
        </Link>
      </h2>
      {query.data === undefined ? (
        <div className="relative z-10">
          {query.isError ? (
            <ErrorState error={query.error} onRetry={() => void query.refetch()} />
          ) : (
            <Skeleton lines={2} />
          )}
        </div>
      ) : (
        <>
          {query.isError && (
            <div className="relative z-10">
              <StaleBar
                since={query.dataUpdatedAt}
                busy={query.isFetching}
                onRetry={() => void query.refetch()}
              />
            </div>
          )}
          {children(query.data)}
        </>
      )}
    </section>
  );
}

interface FigureProps {
  value: string;
  label: string;
  bad?: boolean;
  /** The list of just these. */
  href?: string;
}

function Figure({ value, label, bad = false, href }: FigureProps) {
  return (
    <div className="min-w-0">
      <dd className={`text-2xl font-semibold tracking-tight tabular-nums ${bad ? 'text-danger' : ''}`}>
        {href === undefined ? (
          value
        ) : (
          <Link
            href={href}
            aria-label={`${value} ${label}`}
            className="relative z-10 inline-block min-w-6 rounded hover:text-accent"
          >
            {value}
          </Link>
        )}
      </dd>
      <dt className="text-sm text-muted">{label}</dt>
    </div>
  );
}

export function TodayCard() {
  const { t, number } = useText();
  const format = useFormat();
  const stats = useStats('date', 1);
  return (
    <StatCard title={t('overview.today')} href="/usage?days=1" query={stats}>
      {({ stats: rows, stale, as_of }) => {
        const today = rows[0] ?? { calls: 0, tokens: 0, cost_usd: 0 };
        return (
          <>
            <dl className="flex flex-wrap gap-x-8 gap-y-2">
              <Figure value={number(today.calls)} label={t('overview.calls')} />
              <Figure value={format.short(today.tokens)} label={t('overview.tokens')} />
              <Figure value={format.money(today.cost_usd)} label={t('overview.cost')} />
            </dl>
            {stale && (
              <p className="mt-2 text-sm text-warning">
                {t('overview.stale')} <RelativeTime at={as_of} />
              </p>
            )}
          </>
        );
      }}
    </StatCard>
  );
}

export function EmployeesCard() {
  const { t, number } = useText();
  const counts = useEmployeeCounts();
  return (
    <StatCard title={t('overview.employees')} href="/users" query={counts}>
      {({ all, active }) => (
        <dl className="flex flex-wrap gap-x-8 gap-y-2">
          <Figure value={number(active)} label={t('users.active')} href="/users?status=active" />
          <Figure value={number(all - active)} label={t('users.revoked')} href="/users?status=revoked" />
        </dl>
      )}
    </StatCard>
  );
}

export function TasksCard() {
  const { t, number } = useText();
  const counts = useTaskCounts();
  return (
    <StatCard title={t('overview.tasks')} href="/tasks" query={counts}>
      {({ pending, processing, failed, dead }) => (
        <dl className="flex flex-wrap gap-x-4 gap-y-2">
          <Figure value={number(pending)} label={t('task.pending')} href="/tasks?status=pending" />
          <Figure value={number(processing)} label={t('task.processing')} href="/tasks?status=processing" />
          <Figure
            value={number(failed)}
            label={t('task.failed')}
            bad={failed > 0}
            href="/tasks?status=failed"
          />
          <Figure value={number(dead)} label={t('task.dead')} bad={dead > 0} href="/tasks?status=dead" />
        </dl>
      )}
    </StatCard>
  );
}

export function SelfHealCard() {
  const { t } = useText();
  const format = useFormat();
  const last = useLastSelfHeal();
  const id = useId();
  return (
    <section
      aria-labelledby={id}
      className="min-w-0 rounded-xl border border-line bg-surface p-5 shadow-card"
    >
      <h2 id={id} className="mb-2 text-sm font-medium text-muted">
        <Link href="/jobs?job_name=llm_self_heal" className="rounded hover:text-ink">
          {t('overview.selfHeal')}
        </Link>
      </h2>
      <QueryState query={last}>
        {(run) =>
          run === null ? (
            <p className="text-sm text-muted">{t('overview.neverRan')}</p>
          ) : (
            <>
              <p className="font-medium">
                <Status tone={run.status === 'failed' ? 'bad' : run.status === 'success' ? 'good' : 'none'}>
                  {t(`jobStatus.${run.status}`)}
                </Status>
              </p>
              <p className="mt-1 text-sm text-muted">
                <RelativeTime at={run.created_at} /> · {format.duration(run.duration_ms)}
              </p>
              {run.message && <p className="mt-1 line-clamp-2 text-sm">{run.message}</p>}
            </>
          )
        }
      </QueryState>
    </section>
  );
}

export function ProvidersCard() {
  const { t, number } = useText();
  const format = useFormat();
  const stats = useStats('provider', new Date().getDate());
  return (
    <Panel
      title={t('overview.providers')}
      query={stats}
      empty={{
        when: ({ stats: rows }) => rows.length === 0,
        show: <EmptyState title={t('overview.noSpend')}>{t('overview.noSpendText')}</EmptyState>,
      }}
      action={<More href="/usage?by=provider" />}
    >
      {({ stats: rows }) => (
        <ShareBars
          rows={rows.map((row) => ({
            id: row.key,
            label: row.key || t('overview.nobody'),
            value: row.cost_usd,
            text: format.money(row.cost_usd),
            note: t('overview.callsCount', { count: number(row.calls) }),
          }))}
        />
      )}
    </Panel>
  );
}

export function PoolCard() {
  const { t } = useText();
  const stock = useProfessionStock();
  const seesPool = useMay('people.read');
  return (
    <Panel
      title={t('overview.pool')}
      query={stock}
      empty={{
        when: ({ list }) => list.length === 0,
        show: <EmptyState title={t('professions.none')}>{t('professions.noneText')}</EmptyState>,
      }}
      action={<More href="/professions" />}
    >
      {({ list }) => (
        <ul className="space-y-2.5">
          {list.map((one) => (
            <li key={one.id}>
              <Link
                href={
                  seesPool
                    ? `/professions?tab=pool&profession_id=${encodeURIComponent(one.id)}`
                    : '/professions'
                }
                className="flex items-center gap-3 rounded text-sm hover:text-accent"
              >
                <span aria-hidden="true">{one.icon}</span>
                <span className="min-w-0 flex-1 truncate">{one.name}</span>
                <StockBar idle={one.stock_idle} allocated={one.stock_allocated} total={one.stock_total} />
                <span
                  className={`w-24 text-end tabular-nums ${one.stock_ready === 0 ? 'font-medium text-danger' : 'text-muted'}`}
                >
                  {t('overview.readyOf', { ready: one.stock_ready, total: one.stock_total })}
                </span>
              </Link>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}

export function StockBar({ idle, allocated, total }: { idle: number; allocated: number; total: number }) {
  return (
    <span
      aria-hidden="true"
      className="hidden h-1.5 w-24 gap-px overflow-hidden rounded-full bg-sunken sm:flex"
    >
      {total > 0 && (
        <>
          <span className="bg-accent" style={{ width: `${(allocated / total) * 100}%` }} />
          <span className="bg-success" style={{ width: `${(idle / total) * 100}%` }} />
        </>
      )}
    </span>
  );
}

export function More({ href }: { href: string }) {
  const { t } = useText();
  return (
    <Link href={href} className="rounded text-sm font-medium text-accent hover:underline">
      {t('overview.more')}
    </Link>
  );
}
