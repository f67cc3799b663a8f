// What the platform repaired on an instance by itself.
import { useQuery } from '@tanstack/react-query';
import type { components } from '@tidepool/shared/api/employee.gen';
import { unwrap } from '@tidepool/shared/api/envelope';
import type { RepairRule } from '@tidepool/shared/api/registry.gen';
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

const RULES: Readonly<Record<RepairRule, Key>> = {
  no_api_key: 'repairs.no_api_key',
  exit_loop: 'repairs.exit_loop',
  out_of_memory: 'repairs.out_of_memory',
  unknown_key: 'repairs.unknown_key',
  auth_profiles: 'repairs.auth_profiles',
  port_taken: 'repairs.port_taken',
  not_listening: 'repairs.not_listening',
  rate_limited: 'repairs.rate_limited',
  bot_channel: 'repairs.bot_channel',
  auto_recovery: 'repairs.auto_recovery',
  llm_self_heal: 'repairs.llm_self_heal',
  foreign_listener: 'repairs.foreign_listener',
  stuck_session: 'repairs.stuck_session',
};

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
        {/* A rule that a newer server has is better named by its id than not at all. */}
        <span className="font-medium">
          {Object.hasOwn(RULES, repair.rule) ? t(RULES[repair.rule as RepairRule]) : repair.rule}
        </span>
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
