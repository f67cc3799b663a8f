// What was used: four windows, the last 30 days, by model and instance, and the single requests.
import { Page } from '@tidepool/shared/shell/page';
import { ErrorBoundary } from '@tidepool/shared/ui/error-boundary';
import { ErrorState } from '@tidepool/shared/ui/states';
import { useSearchParams } from 'wouter';
import { useText } from '../messages';
import { DailyChart } from '../usage/daily-chart';
import type { LogFilter } from '../usage/queries';
import { RequestLog } from '../usage/request-log';
import { Shares } from '../usage/shares';
import { Windows } from '../usage/windows';

export default function Usage() {
  const { t } = useText();
  const [search, setSearch] = useSearchParams();
  const instance = search.get('instance') ?? '';
  const named = search.get('status');
  const status = named === 'success' || named === 'error' ? named : '';
  const page = Math.max(1, Math.trunc(Number(search.get('log') ?? 1)) || 1);

  /** What is chosen stands in the address; what says nothing is left out. */
  function choose(next: LogFilter, at: number) {
    const named = { instance: next.instance, status: next.status, log: at > 1 ? String(at) : '' };
    setSearch(Object.fromEntries(Object.entries(named).filter(([, value]) => value !== '')));
  }

  return (
    <Page title={t('nav.usage')} lead={t('usage.lead')}>
      <div className="grid gap-5">
        <ErrorBoundary fallback={(reset) => <ErrorState error={null} onRetry={reset} />}>
          <Windows />
        </ErrorBoundary>
        <DailyChart instance={instance} />
        <Shares />
        <RequestLog
          filter={{ instance, status }}
          page={page}
          onFilter={(next) => choose(next, 1)}
          onPage={(next) => choose({ instance, status }, next)}
        />
      </div>
    </Page>
  );
}
