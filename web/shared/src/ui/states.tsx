// The honest states that every panel shares: loading, empty, failed, and shown although the refresh failed.
import { CloudOff, RotateCw } from 'lucide-react';
import type { ReactNode } from 'react';
import { ApiError } from '../api/envelope';
import { errorText } from '../api/error-text';
import { useI18n } from '../i18n/i18n';
import { RelativeTime } from '../i18n/time';
import { Button } from './button';

const WIDTHS = ['w-2/3', 'w-full', 'w-5/6', 'w-1/2'];

export function Skeleton({ lines = 3 }: { lines?: number }) {
  const { t } = useI18n();
  return (
    <div role="status" className="space-y-3 py-1">
      <span className="sr-only">{t('state.loading')}</span>
      {Array.from({ length: lines }, (_, index) => (
        <div
          key={index}
          className={`h-4 animate-pulse rounded bg-line ${WIDTHS[index % WIDTHS.length] ?? ''}`}
        />
      ))}
    </div>
  );
}

/** Nothing here yet; `children` says what to do next. */
export function EmptyState({ title, children }: { title: string; children: ReactNode }) {
  return (
    <div className="space-y-1 py-1">
      <p className="font-medium">{title}</p>
      <div className="text-sm text-muted">{children}</div>
    </div>
  );
}

export function ErrorState({ error, onRetry }: { error: unknown; onRetry: () => void }) {
  const i18n = useI18n();
  const requestId = error instanceof ApiError ? error.requestId : null;
  return (
    <div role="alert" className="flex flex-col items-start gap-3 py-1">
      <div>
        <p className="font-medium text-danger">{i18n.t('state.failed')}</p>
        <p className="text-sm text-muted">{errorText(error, i18n)}</p>
        {requestId !== null && (
          <p className="mt-1 font-mono text-xs text-muted">{i18n.t('state.requestId', { id: requestId })}</p>
        )}
      </div>
      <Button onClick={onRetry}>
        <RotateCw className="size-4" aria-hidden="true" />
        {i18n.t('state.retry')}
      </Button>
    </div>
  );
}

export function StaleBar({ since, busy, onRetry }: { since: number; busy: boolean; onRetry: () => void }) {
  const { t } = useI18n();
  const [before, after] = t('state.stale').split('{age}');
  return (
    <div
      role="status"
      className="mb-4 flex flex-wrap items-center gap-x-3 gap-y-1 rounded-lg bg-warning-soft px-3 py-1.5 text-sm text-warning"
    >
      <CloudOff className="size-4 shrink-0" aria-hidden="true" />
      <span className="min-w-0 flex-1">
        {before}
        <RelativeTime at={since} />
        {after}
      </span>
      <button
        type="button"
        className="min-h-6 rounded font-medium underline underline-offset-2"
        aria-disabled={busy || undefined}
        onClick={onRetry}
      >
        {t('state.retry')}
      </button>
    </div>
  );
}
