// What one instance used: thirty days as a chart, and its latest requests.
import { useQuery } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { RelativeTime } from '@tidepool/shared/i18n/time';
import { Chart } from '@tidepool/shared/ui/chart/chart';
import { Status } from '@tidepool/shared/ui/badge';
import { EstimatedMark } from '@tidepool/shared/ui/estimated';
import { EmptyState } from '@tidepool/shared/ui/states';
import { Link } from 'wouter';
import { api } from '../api';
import { useFormat } from '../format';
import { useText } from '../messages';
import { lastDays } from '../overview/queries';
import { QueryState } from '../parts/query-state';
import type { InstanceDetail } from '../records';

const DAYS = 30;

export function UsageTab({ instance }: { instance: InstanceDetail }) {
  const { t } = useText();
  const format = useFormat();
  const daily = useQuery({
    queryKey: ['usage', 'of', instance.id],
    queryFn: () =>
      unwrap(
        api.GET('/usage-daily', {
          params: { query: { instance_id: instance.id, days: DAYS, page: 1, page_size: 100 } },
        }),
      ),
  });
  const requests = useQuery({
    queryKey: ['usage', 'requests-of', instance.id],
    queryFn: () =>
      unwrap(api.GET('/llm-logs', { params: { query: { instance_id: instance.id, limit: 20, offset: 0 } } })),
  });
  return (
    <div className="space-y-7">
      <section>
        <h3 className="mb-3 text-sm font-semibold">{t('usage.tokensPerDay')}</h3>
        <QueryState query={daily}>
          {({ list }) => {
            const byDay = new Map(list.map((row) => [row.date, row.total_tokens]));
            const days = lastDays(DAYS);
            return list.length === 0 ? (
              <EmptyState title={t('usage.none')}>{t('usage.noneText')}</EmptyState>
            ) : (
              <Chart
                label={t('usage.tokensPerDay')}
                kind="bar"
                points={days.map((day) => ({ label: format.day(day) }))}
                series={[
                  {
                    id: 'tokens',
                    label: t('overview.tokens'),
                    values: days.map((day) => byDay.get(day) ?? 0),
                  },
                ]}
                format={format.short}
              />
            );
          }}
        </QueryState>
      </section>
      <section>
        <div className="mb-2 flex items-center">
          <h3 className="flex-1 text-sm font-semibold">{t('usage.latest')}</h3>
          <Link
            href={`/requests?instance=${encodeURIComponent(instance.id)}`}
            className="rounded text-sm font-medium text-accent hover:underline"
          >
            {t('overview.more')}
          </Link>
        </div>
        <QueryState query={requests}>
          {({ list }) => (
            <ul className="divide-y divide-line text-sm">
              {list.map((one) => (
                <li
                  key={one.id}
                  className="grid grid-cols-[minmax(0,1fr)_auto] gap-x-4 gap-y-0.5 py-2 sm:grid-cols-[minmax(0,1fr)_auto_5rem_7rem]"
                >
                  <Status tone={one.status === 'success' ? 'good' : 'bad'}>{one.model}</Status>
                  <span className="row-start-2 text-muted tabular-nums sm:col-start-2 sm:row-start-1 sm:text-end">
                    {t('usage.oneRequest', {
                      tokensIn: format.short(one.tokens_in),
                      tokensOut: format.short(one.tokens_out),
                      duration: format.duration(one.duration_ms),
                    })}
                  </span>
                  <span className="text-end tabular-nums">
                    <EstimatedMark when={one.estimated} />
                    {format.fineMoney(one.cost)}
                  </span>
                  <span className="text-end text-muted">
                    <RelativeTime at={one.created_at} />
                  </span>
                  {one.error_message && (
                    <span className="col-span-full text-danger">{one.error_message}</span>
                  )}
                </li>
              ))}
            </ul>
          )}
        </QueryState>
      </section>
    </div>
  );
}
