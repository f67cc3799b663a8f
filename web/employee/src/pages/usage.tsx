// What was used: four windows, the last 30 days, by model and instance, and the single requests.
import { Page } from '@tidepool/shared/shell/page';
import { ErrorBoundary } from '@tidepool/shared/ui/error-boundary';
import { ErrorState } from '@tidepool/shared/ui/states';
import { useSearchParams } from 'wouter';
import { useText } from '../messages';
import { DailyChart } from '../usage/daily-chart';
import { RequestLog } from '../usage/request-log';
import { Shares } from '../usage/shares';
import { Windows } from '../usage/windows';

export default function Usage() {
  const { t } = useText();
  const [search, setSearch] = useSearchParams();
  const instance = search.get('instance') ?? '';
  return (
    <Page title={t('nav.usage')} lead={t('usage.lead')}>
      <div className="grid gap-5">
        <ErrorBoundary fallback={(reset) => <ErrorState error={null} onRetry={reset} />}>
          <Windows />
        </ErrorBoundary>
        <DailyChart instance={instance} />
        <Shares />
        <RequestLog instance={instance} onInstance={(id) => setSearch(id ? { instance: id } : {})} />
      </div>
    </Page>
  );
}
