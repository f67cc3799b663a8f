// What the platform repaired on an instance by itself.
import { useQuery } from '@tanstack/react-query';
import type { components } from '@tidepool/shared/api/employee.gen';
import { unwrap } from '@tidepool/shared/api/envelope';
import { REPAIR_RULES, type RepairRule } from '@tidepool/shared/api/registry.gen';
import { RelativeTime } from '@tidepool/shared/i18n/time';
import { Badge, type Tone } from '@tidepool/shared/ui/badge';
import { Panel } from '@tidepool/shared/ui/panel';
import { EmptyState } from '@tidepool/shared/ui/states';
import { Wrench } from 'lucide-react';
import { api } from '../api';
import { useText, type Key } from '../messages';

type Repair = components['schemas']['OwnRepair'];

const SHOWN = 10;

const TONES: Record<Repair['status'], Tone> = {
  running: 'busy',
  success: 'good',
  failed: 'bad',
  alert: 'warn',
};

/** A rule that a newer server has is better named by its id than not at all. */
function ruleText(rule: string, t: (key: Key) => string): string {
  const known: readonly string[] = REPAIR_RULES;
  return known.includes(rule) ? t(`repairs.${rule as RepairRule}`) : rule;
}

export function Repairs({ instance }: { instance: string }) {
  const { t } = useText();
  const repairs = useQuery({
    queryKey: ['repairs', instance],
    queryFn: () => {
      const params = { path: { id: instance }, query: { limit: SHOWN } };
      return unwrap(api.GET('/me/instances/{id}/repairs', { params }));
    },
  });
  return (
    <Panel
      title={t('repairs.title')}
      icon={<Wrench aria-hidden="true" />}
      query={repairs}
      empty={{
        when: ({ list }) => list.length === 0,
        show: <EmptyState title={t('repairs.none')}>{t('repairs.noneHint')}</EmptyState>,
      }}
    >
      {({ list }) => (
        <ul className="divide-y divide-line">
          {list.map((one) => (
            <RepairItem key={one.id} repair={one} />
          ))}
        </ul>
      )}
    </Panel>
  );
}

function RepairItem({ repair }: { repair: Repair }) {
  const { t } = useText();
  return (
    <li className="py-2.5 text-sm first:pt-0 last:pb-0">
      <p className="flex flex-wrap items-center justify-between gap-x-3">
        <span className="font-medium">{ruleText(repair.rule, t)}</span>
        <span className="text-muted">
          <RelativeTime at={repair.created_at} />
        </span>
      </p>
      <p className="flex flex-wrap items-center gap-2 text-muted">
        <Badge tone={TONES[repair.status]}>{t(`repairs.${repair.status}`)}</Badge>
        {repair.action}
      </p>
    </li>
  );
}
