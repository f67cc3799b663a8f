// Who did what to one instance, newest first.
import { useQuery } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { EmptyState } from '@tidepool/shared/ui/states';
import { Link } from 'wouter';
import { api } from '../api';
import { useText } from '../messages';
import { AuditList } from '../parts/audit-list';
import { QueryState } from '../parts/query-state';
import type { InstanceDetail } from '../records';

export function AuditTab({ instance }: { instance: InstanceDetail }) {
  const { t } = useText();
  const entries = useQuery({
    queryKey: ['audit', 'of', instance.id],
    queryFn: () =>
      unwrap(api.GET('/audit-logs', { params: { query: { target: instance.id, limit: 50, offset: 0 } } })),
  });
  return (
    <div className="space-y-3">
      <QueryState query={entries}>
        {({ list }) =>
          list.length === 0 ? (
            <EmptyState title={t('audit.none')}>{t('audit.noneText')}</EmptyState>
          ) : (
            <AuditList entries={list} />
          )
        }
      </QueryState>
      <Link
        href={`/audit?target=${encodeURIComponent(instance.id)}`}
        className="rounded text-sm font-medium text-accent hover:underline"
      >
        {t('overview.more')}
      </Link>
    </div>
  );
}
