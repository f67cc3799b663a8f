// Audit entries in a narrow place.
import { RelativeTime } from '@tidepool/shared/i18n/time';
import { Badge, type Tone } from '@tidepool/shared/ui/badge';
import { DetailLines } from './detail-lines';
import type { AuditEntry, Level } from '../records';

export const LEVEL_TONES: Record<Level, Tone> = { INFO: 'none', WARN: 'warn', ERROR: 'bad' };

export function AuditList({ entries }: { entries: readonly AuditEntry[] }) {
  return (
    <ul className="divide-y divide-line text-sm">
      {entries.map((entry) => (
        <li key={entry.id} className="py-2.5">
          <p className="flex flex-wrap items-center gap-2">
            <Badge tone={LEVEL_TONES[entry.level]}>{entry.action}</Badge>
            <span className="text-muted">
              {entry.operator} · <RelativeTime at={entry.created_at} />
            </span>
          </p>
          <DetailLines detail={entry.detail} />
        </li>
      ))}
    </ul>
  );
}
