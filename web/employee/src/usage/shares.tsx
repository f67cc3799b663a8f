// The last 30 days by model and by instance.
import { ShareBars } from '@tidepool/shared/ui/chart/share-bars';
import { Panel } from '@tidepool/shared/ui/panel';
import { EmptyState } from '@tidepool/shared/ui/states';
import { Bot, Cpu } from 'lucide-react';
import { useText } from '../messages';
import { compact, usd } from '../money';
import { useLastDays } from './queries';

export function Shares() {
  const { t, locale } = useText();
  const days = useLastDays();
  const empty = {
    when: () => days.data?.total.requests === 0,
    show: <EmptyState title={t('usage.none')}>{t('usage.noneHint')}</EmptyState>,
  };
  const row = (id: string, label: string, sums: { total_tokens: number; cost_usd: number }) => ({
    id,
    label,
    value: sums.total_tokens,
    text: usd(sums.cost_usd, locale),
    note: t('usage.tokensOf', { count: compact(sums.total_tokens, locale) }),
  });
  return (
    <div className="grid gap-5 md:grid-cols-2">
      <Panel title={t('usage.byModel')} icon={<Cpu aria-hidden="true" />} query={days} empty={empty}>
        {(data) => <ShareBars rows={data.by_model.map((one) => row(one.model, one.model, one))} />}
      </Panel>
      <Panel title={t('usage.byInstance')} icon={<Bot aria-hidden="true" />} query={days} empty={empty}>
        {(data) => (
          <ShareBars
            rows={data.by_instance.map((one) =>
              row(one.instance_id, one.instance_name || one.instance_id, one),
            )}
          />
        )}
      </Panel>
    </div>
  );
}
