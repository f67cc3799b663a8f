// Repairs, each with what was found before, what was done, and what came of it; or with what would be done.
import { RelativeTime } from '@tidepool/shared/i18n/time';
import { Badge, type Tone } from '@tidepool/shared/ui/badge';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { useFormat } from '../format';
import { useText } from '../messages';
import type { PlannedRepair, Repair } from '../records';
import { ruleText } from './rule-text';

const TONES: Record<Repair['status'], Tone> = {
  running: 'busy',
  success: 'good',
  failed: 'bad',
  alert: 'warn',
};

export function RepairList({ repairs }: { repairs: readonly Repair[] }) {
  const { t } = useText();
  const format = useFormat();
  return (
    <ul className="divide-y divide-line text-sm">
      {repairs.map((repair) => (
        <Line
          key={repair.id}
          repair={repair}
          tone={TONES[repair.status]}
          facts={
            <>
              {t(`repairs.status.${repair.status}`)} · <RelativeTime at={repair.created_at} />
              {/* Where somebody was only told, nothing took any time. */}
              {(repair.status === 'success' || repair.status === 'failed') &&
                ` · ${format.duration(repair.took_ms)}`}
            </>
          }
        >
          <Fact name={t('repairs.action')} text={repair.action} />
          <Fact name={t('repairs.result')} text={repair.after} />
        </Line>
      ))}
    </ul>
  );
}

export function PlannedList({ repairs }: { repairs: readonly PlannedRepair[] }) {
  const { t } = useText();
  return (
    <ul className="divide-y divide-line text-sm">
      {repairs.map((repair) => (
        <Line
          key={`${repair.rule} ${repair.instance_id} ${repair.before}`}
          repair={repair}
          tone="warn"
          facts={t('repairs.rule', { number: repair.rule_number })}
        >
          <Fact name={t('repairs.would')} text={repair.action} />
        </Line>
      ))}
    </ul>
  );
}

interface LineProps {
  repair: Pick<Repair, 'rule' | 'instance_id' | 'before'>;
  tone: Tone;
  facts: ReactNode;
  children: ReactNode;
}

function Line({ repair, tone, facts, children }: LineProps) {
  const { t } = useText();
  return (
    <li className="space-y-1 py-3">
      <p className="flex flex-wrap items-center gap-2">
        <Badge tone={tone}>{ruleText(repair.rule, t)}</Badge>
        <Link
          href={`/instances?open=${encodeURIComponent(repair.instance_id)}&tab=repairs`}
          className="rounded font-medium hover:text-accent"
        >
          {repair.instance_id}
        </Link>
        <span className="text-muted">{facts}</span>
      </p>
      {repair.before && (
        <p>
          <span className="text-muted">{t('repairs.evidence')} </span>
          <code className="font-mono text-xs break-words">{repair.before}</code>
        </p>
      )}
      {children}
    </li>
  );
}

function Fact({ name, text }: { name: string; text: string }) {
  if (text === '') return null;
  return (
    <p>
      <span className="text-muted">{name} </span>
      {text}
    </p>
  );
}
