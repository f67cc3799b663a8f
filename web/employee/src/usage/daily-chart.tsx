// The last 30 days as bars, of one's choice: tokens (question and answer), cost or requests.
import { Chart, Legend } from '@tidepool/shared/ui/chart/chart';
import { Panel } from '@tidepool/shared/ui/panel';
import { Segmented } from '@tidepool/shared/ui/segmented';
import { EmptyState } from '@tidepool/shared/ui/states';
import { ChartColumn } from 'lucide-react';
import { useState } from 'react';
import { useText } from '../messages';
import { compact, usd } from '../money';
import { useDaily } from './queries';

type Measure = 'tokens' | 'cost' | 'requests';

export function DailyChart({ instance }: { instance: string }) {
  const { t, locale, number } = useText();
  const [measure, setMeasure] = useState<Measure>('tokens');
  const daily = useDaily(instance);
  const day = new Intl.DateTimeFormat(locale, { month: 'short', day: 'numeric', timeZone: 'UTC' });
  const long = new Intl.DateTimeFormat(locale, { dateStyle: 'full', timeZone: 'UTC' });
  return (
    <Panel
      title={t('usage.days')}
      icon={<ChartColumn aria-hidden="true" />}
      query={daily}
      skeletonLines={6}
      action={
        <Segmented
          legend={t('usage.measure')}
          compact
          value={measure}
          options={(['tokens', 'cost', 'requests'] as const).map((value) => ({
            value,
            label: t(`usage.${value}`),
          }))}
          onChange={setMeasure}
        />
      }
      empty={{
        when: ({ daily: days }) => days.every((one) => one.requests === 0),
        show: <EmptyState title={t('usage.none')}>{t('usage.noneHint')}</EmptyState>,
      }}
    >
      {({ daily: days }) => {
        const points = days.map(({ date }) => ({
          label: day.format(new Date(date)),
          title: long.format(new Date(date)),
        }));
        const series =
          measure === 'tokens'
            ? [
                { id: 'prompt', label: t('usage.prompt'), values: days.map((one) => one.prompt_tokens) },
                {
                  id: 'completion',
                  label: t('usage.completion'),
                  values: days.map((one) => one.completion_tokens),
                },
              ]
            : [
                {
                  id: measure,
                  label: t(`usage.${measure}`),
                  values: days.map((one) => (measure === 'cost' ? one.cost_usd : one.requests)),
                },
              ];
        const cost = (value: number) => usd(value, locale);
        return (
          <>
            <Chart
              label={t('usage.chart', { what: t(`usage.${measure}`) })}
              kind="bar"
              points={points}
              series={series}
              format={measure === 'cost' ? cost : number}
              formatTick={
                measure === 'cost' ? (value) => money(value, locale) : (value) => compact(value, locale)
              }
              totalLabel={measure === 'tokens' ? t('usage.total') : undefined}
            />
            {series.length > 1 && (
              <div className="mt-2">
                <Legend series={series} />
              </div>
            )}
          </>
        );
      }}
    </Panel>
  );
}

/** An axis of cents needs more than two decimals. */
function money(value: number, locale: string): string {
  return new Intl.NumberFormat(locale, {
    style: 'currency',
    currency: 'USD',
    currencyDisplay: 'narrowSymbol',
    minimumFractionDigits: 0,
    maximumFractionDigits: 4,
  }).format(value);
}
