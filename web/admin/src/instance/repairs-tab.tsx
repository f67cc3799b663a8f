// What was repaired on one instance: what was found, what was done, what came of it.
import { useQuery } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { EmptyState } from '@tidepool/shared/ui/states';
import { api } from '../api';
import { RepairList } from '../guardian/repair-list';
import { useText } from '../messages';
import { QueryState } from '../parts/query-state';
import type { InstanceDetail } from '../records';

export function RepairsTab({ instance }: { instance: InstanceDetail }) {
  const { t } = useText();
  const repairs = useQuery({
    queryKey: ['repairs', 'of', instance.id],
    queryFn: () =>
      unwrap(
        api.GET('/repairs', { params: { query: { instance_id: instance.id, page: 1, page_size: 50 } } }),
      ),
    retry: false,
  });
  return (
    <QueryState query={repairs}>
      {({ list }) =>
        list.length === 0 ? (
          <EmptyState title={t('repairs.none')}>{t('repairs.noneText')}</EmptyState>
        ) : (
          <RepairList repairs={list} />
        )
      }
    </QueryState>
  );
}
