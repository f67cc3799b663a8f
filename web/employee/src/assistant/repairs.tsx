// What the platform repaired on an instance by itself.
import { useQuery } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { RelativeTime } from '@tidepool/shared/i18n/time';
import { Panel } from '@tidepool/shared/ui/panel';
import { EmptyState } from '@tidepool/shared/ui/states';
import { Wrench } from 'lucide-react';
import { useText } from '../messages';
import { notOffered, pending, type Repair } from '../pending-api';
import { NotAvailable } from './not-available';

export function Repairs({ instance }: { instance: string }) {
  const { t } = useText();
  const repairs = useQuery({
    queryKey: ['repairs', instance],
    retry: false,
    queryFn: async (): Promise<Repair[] | 'not-offered'> => {
      try {
        const params = { path: { id: instance }, query: { limit: 10 } };
        return (await unwrap(pending.GET('/me/instances/{id}/repairs', { params }))).list;
      } catch (error) {
        if (notOffered(error)) return 'not-offered';
        throw error;
      }
    },
  });
  return (
    <Panel
      title={t('repairs.title')}
      icon={<Wrench aria-hidden="true" />}
      query={repairs}
      empty={{
        when: (list) => list.length === 0,
        show: <EmptyState title={t('repairs.none')}>{t('repairs.noneHint')}</EmptyState>,
      }}
    >
      {(list) =>
        list === 'not-offered' ? (
          <NotAvailable />
        ) : (
          <ul className="divide-y divide-line">
            {list.map((one) => (
              <li key={one.id} className="py-2.5 text-sm first:pt-0 last:pb-0">
                <p className="flex justify-between gap-3">
                  <span className="font-medium">{one.rule}</span>
                  <span className="text-muted">
                    <RelativeTime at={one.created_at} />
                  </span>
                </p>
                <p className="text-muted">
                  {one.action} → {one.after || one.status}
                </p>
              </li>
            ))}
          </ul>
        )
      }
    </Panel>
  );
}
