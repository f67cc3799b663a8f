// One department's people and spend, today and this month, in a dialog.
import { useQuery } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { Dialog } from '@tidepool/shared/ui/dialog';
import { Facts } from '@tidepool/shared/ui/panel';
import { Link } from 'wouter';
import { api } from '../api';
import { useFormat } from '../format';
import { useText } from '../messages';
import { QueryState } from '../parts/query-state';
import { DepartmentsSince } from './holder';

export function Department({ name, onClose }: { name: string; onClose: () => void }) {
  const { t, number } = useText();
  const format = useFormat();
  const usage = useQuery({
    queryKey: ['usage', 'department', name],
    queryFn: () => unwrap(api.GET('/usage/dept/{dept}', { params: { path: { dept: name } } })),
  });
  return (
    <Dialog open onClose={onClose} title={name}>
      <QueryState query={usage}>
        {(data) => (
          <div className="space-y-4">
            <Facts
              rows={[
                { name: t('overview.employees'), value: number(data.users) },
                {
                  name: t('overview.today'),
                  value: `${format.money(data.today.cost_usd)} · ${format.short(data.today.total_tokens)}`,
                },
                {
                  name: t('usage.month'),
                  value: `${format.money(data.month.cost_usd)} · ${format.short(data.month.total_tokens)}`,
                },
              ]}
            />
            <DepartmentsSince at={data.departments_since} />
            <Link
              href={`/users?department=${encodeURIComponent(name)}`}
              className="rounded text-sm font-medium text-accent hover:underline"
            >
              {t('usage.toPeople')}
            </Link>
          </div>
        )}
      </QueryState>
    </Dialog>
  );
}
