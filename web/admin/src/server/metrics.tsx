// A server's load over a day, a week or a month.
import { useQuery } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { useAddressValue } from '@tidepool/shared/table/table-state';
import { Chart, Legend } from '@tidepool/shared/ui/chart/chart';
import { Panel } from '@tidepool/shared/ui/panel';
import { Segmented } from '@tidepool/shared/ui/segmented';
import { EmptyState } from '@tidepool/shared/ui/states';
import { api } from '../api';
import { useFormat } from '../format';
import { useText } from '../messages';
import { oneOf } from '../records';
import { withGaps } from './gaps';

const RANGES = ['24', '168', '720'] as const;

export function Metrics({ id }: { id: string }) {
  const { t, locale } = useText();
  const format = useFormat();
  const [wanted, setHours] = useAddressValue('hours');
  const hours = oneOf(wanted ?? undefined, RANGES) ?? '24';
  const points = useQuery({
    queryKey: ['metrics', 'points', id, hours],
    queryFn: () =>
      unwrap(api.GET('/server-metrics/{id}', { params: { path: { id }, query: { hours: Number(hours) } } })),
  });
  const label = new Intl.DateTimeFormat(
    locale,
    hours === '24' ? { hour: '2-digit', minute: '2-digit' } : { month: 'short', day: 'numeric' },
  );
  const title = new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'short' });
  return (
    <Panel
      title={t('metrics.title')}
      query={points}
      action={
        <Segmented
          legend={t('metrics.range')}
          compact
          value={hours}
          onChange={setHours}
          options={RANGES.map((value) => ({ value, label: t(`metrics.${value}`) }))}
        />
      }
      empty={{
        when: ({ list }) => list.length === 0,
        show: <EmptyState title={t('metrics.none')}>{t('metrics.noneText')}</EmptyState>,
      }}
    >
      {({ list }) => {
        const shown = withGaps(list);
        const series = [
          { id: 'cpu', label: t('servers.cpu'), values: shown.map((point) => point.cpu_percent) },
          { id: 'memory', label: t('servers.memory'), values: shown.map((point) => point.memory_percent) },
          { id: 'disk', label: t('servers.disk'), values: shown.map((point) => point.disk_percent) },
        ];
        return (
          <div className="space-y-3">
            <Chart
              label={t('metrics.title')}
              kind="line"
              max={100}
              points={shown.map((point) => ({
                label: label.format(new Date(point.created_at)),
                title: title.format(new Date(point.created_at)),
              }))}
              series={series}
              format={format.percent}
            />
            <Legend series={series} />
          </div>
        );
      }}
    </Panel>
  );
}
