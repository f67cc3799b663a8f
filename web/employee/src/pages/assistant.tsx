// My assistant: how an own instance is, what was repaired on it, its bot, what is installed, and the way to give it back.
import { Page } from '@tidepool/shared/shell/page';
import { Segmented } from '@tidepool/shared/ui/segmented';
import { EmptyState, ErrorState, Skeleton } from '@tidepool/shared/ui/states';
import { Link, useSearchParams } from 'wouter';
import { Bots } from '../assistant/bots';
import { HealthCard } from '../assistant/health-card';
import { Repairs } from '../assistant/repairs';
import { useInstances } from '../instances-query';
import { Installs } from '../marketplace/installs';
import { useText } from '../messages';

export default function Assistant() {
  const { t } = useText();
  const [search, setSearch] = useSearchParams();
  const instances = useInstances();
  const list = instances.data;
  const instance = list?.find((one) => one.id === search.get('instance')) ?? list?.[0];
  return (
    <Page title={t('nav.assistant')} lead={t('assistant.lead')}>
      {list === undefined ? (
        instances.isError ? (
          <ErrorState error={instances.error} onRetry={() => void instances.refetch()} />
        ) : (
          <Skeleton lines={6} />
        )
      ) : instance === undefined ? (
        <EmptyState title={t('assistant.none')}>
          <Link href="/" className="font-medium text-accent hover:underline">
            {t('assistant.toClaim')}
          </Link>
        </EmptyState>
      ) : (
        <div className="space-y-5">
          {list.length > 1 && (
            <Segmented
              legend={t('assistant.choose')}
              compact
              value={instance.id}
              options={list.map((one) => ({ value: one.id, label: one.name }))}
              onChange={(id) => setSearch({ instance: id })}
            />
          )}
          <div key={instance.id} className="grid items-start gap-5 lg:grid-cols-2">
            <div className="grid gap-5">
              <HealthCard instance={instance} />
              <Repairs instance={instance.id} />
            </div>
            <div className="grid gap-5">
              <Bots instance={instance.id} />
              <Installs instance={instance.id} />
            </div>
          </div>
        </div>
      )}
    </Page>
  );
}
