// What was repaired on one instance: what was found, what was done, what came of it.
import { useQuery } from '@tanstack/react-query';
import { EmptyState } from '@tidepool/shared/ui/states';
import { RepairList } from '../guardian/repair-list';
import { useText } from '../messages';
import { Maybe } from '../parts/not-available';
import { call, type Listing, type Repair } from '../pending-api';
import type { InstanceDetail } from '../records';

export function RepairsTab({ instance }: { instance: InstanceDetail }) {
  const { t } = useText();
  const repairs = useQuery({
    queryKey: ['repairs', 'of', instance.id],
    queryFn: () =>
      call<Listing<Repair>>(
        'GET',
        `/repairs?instance_id=${encodeURIComponent(instance.id)}&page=1&page_size=50`,
      ),
    retry: false,
  });
  return (
    <Maybe query={repairs}>
      {({ list }) =>
        list.length === 0 ? (
          <EmptyState title={t('repairs.none')}>{t('repairs.noneText')}</EmptyState>
        ) : (
          <RepairList repairs={list} />
        )
      }
    </Maybe>
  );
}
