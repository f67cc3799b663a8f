// The actions on many instances at once: assign, restart, sync models, upgrade, bring into cells. Each shows first what it will touch.
import { useQuery } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import type { Permission } from '@tidepool/shared/api/registry.gen';
import { Button } from '@tidepool/shared/ui/button';
import { Field } from '@tidepool/shared/ui/field';
import { TextArea } from '@tidepool/shared/ui/text-area';
import { useState } from 'react';
import { api } from '../api';
import { useMay, useRights } from '../me';
import { useText } from '../messages';
import { Batch, type BatchItem } from '../parts/batch';
import { whyNoEntry } from '../parts/cell';
import { isOffered, runsAsText } from '../parts/runs-as';
import type { Instance } from '../records';
import { assign, CELLS_AT_ONCE, enterCells, restart, syncModels, upgrade } from './actions';

const BATCHES = ['assign', 'restart', 'models', 'upgrade', 'cells'] as const;
export type BatchKind = (typeof BATCHES)[number];

const NEEDS: Record<BatchKind, Permission> = {
  assign: 'people.manage',
  restart: 'instances.manage',
  models: 'models.manage',
  upgrade: 'instances.manage',
  cells: 'instances.manage',
};

/** Those that the signed-in administrator may start. */
export function useBatches(): BatchKind[] {
  const { may } = useRights();
  return BATCHES.filter((kind) => may(NEEDS[kind]));
}

interface Props {
  instances: readonly Instance[];
  onClose: () => void;
}

const CHANGES = ['instances', 'tasks', 'users', 'cell'];

export function InstanceBatch({ kind, ...props }: Props & { kind: BatchKind }) {
  if (kind === 'assign') return <AssignBatch {...props} />;
  if (kind === 'restart') return <RestartBatch {...props} />;
  if (kind === 'models') return <ModelsBatch {...props} />;
  if (kind === 'cells') return <CellsBatch {...props} />;
  return <UpgradeBatch {...props} />;
}

const named = (one: Instance): Pick<BatchItem, 'id' | 'label'> => ({
  id: one.id,
  label: `${one.name} (${one.id})`,
});

function RestartBatch({ instances, onClose }: Props) {
  const { t } = useText();
  return (
    <Batch
      title={t('batch.restart')}
      lead={t('batch.restartLead')}
      confirm={t('instances.restart')}
      items={instances.map((one) => ({
        ...named(one),
        effect: one.assigned_email ? t('batch.interrupts', { email: one.assigned_email }) : t('batch.nobody'),
      }))}
      run={({ id }) => restart(id)}
      changes={CHANGES}
      onClose={onClose}
    />
  );
}

function ModelsBatch({ instances, onClose }: Props) {
  const { t } = useText();
  return (
    <Batch
      title={t('batch.models')}
      lead={t('batch.modelsLead')}
      confirm={t('instances.syncModels')}
      items={instances.map((one) => ({ ...named(one), effect: one.model || t('account.notSet') }))}
      run={({ id }) => syncModels([id])}
      changes={CHANGES}
      onClose={onClose}
    />
  );
}

function UpgradeBatch({ instances, onClose }: Props) {
  const { t } = useText();
  const [version, setVersion] = useState('');
  return (
    <Batch
      title={t('batch.upgrade')}
      lead={t('batch.upgradeLead')}
      confirm={t('instances.upgrade')}
      items={instances.map((one) => ({
        ...named(one),
        effect: one.assigned_email ? t('batch.interrupts', { email: one.assigned_email }) : t('batch.nobody'),
      }))}
      run={({ id }) => upgrade(id, version.trim())}
      changes={CHANGES}
      onClose={onClose}
    >
      <div className="mb-4 max-w-xs">
        <Field
          label={t('instances.version')}
          hint={t('instances.versionHint')}
          value={version}
          onChange={(event) => setVersion(event.target.value)}
        />
      </div>
    </Batch>
  );
}

function CellsBatch({ instances, onClose }: Props) {
  const { t } = useText();
  return (
    <Batch
      title={t('batch.cells')}
      lead={t('batch.cellsLead')}
      confirm={t('batch.cells')}
      items={instances.map((one) => {
        const why = whyNoEntry(one);
        if (why !== null) return { ...named(one), skip: t(why) };
        const effect = one.assigned_email
          ? t('batch.interrupts', { email: one.assigned_email })
          : t('batch.nobody');
        return { ...named(one), effect };
      })}
      run={{ most: CELLS_AT_ONCE, together: (items) => enterCells(items.map(({ id }) => id)) }}
      queues
      changes={CHANGES}
      onClose={onClose}
    />
  );
}

/** Instances and e-mails are paired in order; what cannot be assigned says why. */
function AssignBatch({ instances, onClose }: Props) {
  const { t } = useText();
  const [text, setText] = useState('');
  const emails = text.split(/[\s,;]+/).filter(Boolean);
  const users = useQuery({
    queryKey: ['users', 'all-active'],
    queryFn: async () => (await unwrap(api.GET('/users', { params: { query: { status: 'active' } } }))).list,
  });
  const byEmail = new Map((users.data ?? []).map((user) => [user.email.toLowerCase(), user]));
  const without = (users.data ?? []).filter((user) => user.instance_id == null);
  const mayAssignAny = useMay('instances.assign_unisolated');
  const open = instances.filter(
    (one) => !one.pooled && !one.assigned_email && (mayAssignAny || isOffered(one)),
  );
  /** Who gets which instance. */
  const holders = new Map<string, string>();
  const items = instances.map((one) => {
    if (one.pooled) return { ...named(one), skip: t('batch.pooled') };
    if (one.assigned_email) return { ...named(one), skip: t('batch.taken', { email: one.assigned_email }) };
    if (!mayAssignAny && !isOffered(one)) return { ...named(one), skip: t('batch.notOffered') };
    const email = emails[open.indexOf(one)];
    if (email === undefined) return { ...named(one), skip: t('batch.noEmail') };
    const user = byEmail.get(email.toLowerCase());
    if (user === undefined) return { ...named(one), skip: t('batch.unknownUser', { email }) };
    holders.set(one.id, user.id);
    const runsAs = runsAsText(one, t);
    return { ...named(one), effect: runsAs === null ? `→ ${email}` : `→ ${email} (${runsAs})` };
  });
  return (
    <Batch
      title={t('batch.assign')}
      lead={t('batch.assignLead')}
      confirm={t('instances.assign')}
      ready={users.isSuccess}
      items={items}
      run={({ id }) => assign(id, holders.get(id) ?? null)}
      changes={CHANGES}
      onClose={onClose}
    >
      <div className="mb-4 space-y-2">
        <TextArea
          label={t('batch.emails')}
          hint={t('batch.emailsHint')}
          mono
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
        <Button
          size="small"
          disabled={without.length === 0}
          onClick={() =>
            setText(
              without
                .slice(0, instances.length)
                .map((user) => user.email)
                .join('\n'),
            )
          }
        >
          {t('batch.fill', { count: without.length })}
        </Button>
      </div>
    </Batch>
  );
}
