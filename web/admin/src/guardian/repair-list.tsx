// Repairs, each with what was found before, what was done, and what came of it.
import { RelativeTime } from '@tidepool/shared/i18n/time';
import { Badge } from '@tidepool/shared/ui/badge';
import { Link } from 'wouter';
import { useText } from '../messages';
import type { Repair } from '../pending-api';

export function RepairList({ repairs }: { repairs: readonly Repair[] }) {
  const { t } = useText();
  return (
    <ul className="divide-y divide-line text-sm">
      {repairs.map((repair) => (
        <li key={repair.id} className="space-y-1 py-3">
          <p className="flex flex-wrap items-center gap-2">
            <Badge tone={repair.status === 'success' ? 'good' : repair.status === 'failed' ? 'bad' : 'warn'}>
              {repair.rule}
            </Badge>
            <Link
              href={`/instances?open=${encodeURIComponent(repair.instance_id)}&tab=repairs`}
              className="rounded font-medium hover:text-accent"
            >
              {repair.instance_id}
            </Link>
            <span className="text-muted">
              <RelativeTime at={repair.created_at} />
            </span>
          </p>
          {repair.evidence && (
            <p>
              <span className="text-muted">{t('repairs.evidence')} </span>
              <code className="font-mono text-xs">{repair.evidence}</code>
            </p>
          )}
          {repair.action && (
            <p>
              <span className="text-muted">{t('repairs.action')} </span>
              {repair.action}
            </p>
          )}
          {repair.result && (
            <p>
              <span className="text-muted">{t('repairs.result')} </span>
              {repair.result}
            </p>
          )}
        </li>
      ))}
    </ul>
  );
}
