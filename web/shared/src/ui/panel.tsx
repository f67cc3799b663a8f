// A card with a heading, and the same card around a query: it shows whichever of the states is true.
import type { UseQueryResult } from '@tanstack/react-query';
import { useId, type ReactNode } from 'react';
import { useI18n } from '../i18n/i18n';
import { ErrorBoundary } from './error-boundary';
import { ErrorState, Skeleton, StaleBar } from './states';

interface CardProps {
  title: string;
  icon?: ReactNode;
  action?: ReactNode;
  className?: string;
  children: ReactNode;
}

export function Card({ title, icon, action, className = '', children }: CardProps) {
  const id = useId();
  return (
    <section
      aria-labelledby={id}
      className={`min-w-0 rounded-xl border border-line bg-surface p-5 shadow-card sm:p-6 ${className}`}
    >
      <div className="mb-4 flex flex-wrap items-center gap-2.5">
        {icon && <span className="text-accent [&>svg]:size-4.5">{icon}</span>}
        <h2 id={id} className="flex-1 basis-32 text-base font-semibold">
          {title}
        </h2>
        {action}
      </div>
      {children}
    </section>
  );
}

interface PanelProps<Data> extends Omit<CardProps, 'children'> {
  query: UseQueryResult<Data>;
  skeletonLines?: number;
  /** Of the content in pixels, where it is known: then nothing moves when it comes. */
  minHeight?: number;
  /** Drawn instead of the content when it applies. */
  empty?: { when: (data: Data) => boolean; show: ReactNode };
  children: (data: Data) => ReactNode;
}

export function Panel<Data>({ query, skeletonLines, minHeight, empty, children, ...card }: PanelProps<Data>) {
  return (
    <Card {...card}>
      <ErrorBoundary fallback={(reset) => <ErrorState error={null} onRetry={reset} />}>
        <div style={{ minHeight }}>
          <PanelBody query={query} skeletonLines={skeletonLines} empty={empty}>
            {children}
          </PanelBody>
        </div>
      </ErrorBoundary>
    </Card>
  );
}

function PanelBody<Data>({
  query,
  skeletonLines,
  empty,
  children,
}: Omit<PanelProps<Data>, keyof CardProps> & Pick<PanelProps<Data>, 'children'>) {
  const retry = () => void query.refetch();
  if (query.data === undefined) {
    return query.isError ? (
      <ErrorState error={query.error} onRetry={retry} />
    ) : (
      <Skeleton lines={skeletonLines} />
    );
  }
  const since = staleSince(query.data) ?? (query.isError ? query.dataUpdatedAt : null);
  return (
    <>
      {since !== null && <StaleBar since={since} busy={query.isFetching} onRetry={retry} />}
      {empty?.when(query.data) ? empty.show : children(query.data)}
    </>
  );
}

/** What the server itself says of its answer: old numbers come with `stale` and the time they are of. */
export function staleSince(data: unknown): number | null {
  if (typeof data !== 'object' || data === null || !('stale' in data) || !('as_of' in data)) return null;
  return data.stale === true ? Date.parse(String(data.as_of)) : null;
}

/** Names and values, one per row. */
export function Facts({ rows }: { rows: readonly { name: string; value: ReactNode }[] }) {
  return (
    <dl className="divide-y divide-line">
      {rows.map((row) => (
        <div key={row.name} className="flex flex-wrap gap-x-4 gap-y-0.5 py-2.5 first:pt-0 last:pb-0">
          <dt className="w-32 shrink-0 text-sm text-muted">{row.name}</dt>
          <dd className="min-w-0 flex-1 basis-40">{row.value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** A value that nobody has given, which is neither zero nor unknown. */
export function NotSet() {
  const { t } = useI18n();
  return <span className="text-muted">{t('account.notSet')}</span>;
}
