// One instance over the list it was opened from: everything known of it, in tabs that the address remembers.
import { useQuery } from '@tanstack/react-query';
import type { Permission } from '@tidepool/shared/api/registry.gen';
import { useAddressValue } from '@tidepool/shared/table/table-state';
import { SidePanel } from '@tidepool/shared/ui/dialog';
import { ErrorBoundary } from '@tidepool/shared/ui/error-boundary';
import { Menu } from '@tidepool/shared/ui/menu';
import { ErrorState, Skeleton, StaleBar } from '@tidepool/shared/ui/states';
import { Tabs } from '@tidepool/shared/ui/tabs';
import { ArrowUpCircle, RefreshCw, RotateCw, Trash2 } from 'lucide-react';
import { useState } from 'react';
import { useRights } from '../me';
import { useText } from '../messages';
import { Allowed } from '../parts/allowed';
import { CellBadge } from '../parts/cell';
import { HealthStatus } from '../parts/health';
import { HeldBadge } from '../parts/held';
import { RunsAs } from '../parts/runs-as';
import { oneOf, type InstanceDetail } from '../records';
import { readDetail } from './actions';
import { AuditTab } from './audit-tab';
import { InstanceBatch, useBatches, type BatchKind } from './batches';
import { BotsTab } from './bots-tab';
import { CellTab } from './cell-tab';
import { ConfigTab } from './config-tab';
export { CreateInstance } from './create';
import { DeleteInstance } from './delete';
import { FactsTab } from './facts-tab';
import { LogTab } from './log-tab';
import { RepairsTab } from './repairs-tab';
import { StateTab } from './state-tab';
import { TasksTab } from './tasks-tab';
import { UsageTab } from './usage-tab';

const TABS = [
  'overview',
  'log',
  'config',
  'state',
  'cell',
  'tasks',
  'usage',
  'bots',
  'repairs',
  'audit',
] as const;

const BODIES = {
  overview: FactsTab,
  log: LogTab,
  config: ConfigTab,
  state: StateTab,
  cell: CellTab,
  tasks: TasksTab,
  usage: UsageTab,
  bots: BotsTab,
  repairs: RepairsTab,
  audit: AuditTab,
};

/** Every role reads the others. */
const NEEDS: Partial<Record<(typeof TABS)[number], Permission>> = {
  log: 'instances.logs',
  usage: 'usage.read',
  audit: 'audit.read',
};

export function useInstance(id: string) {
  return useQuery({ queryKey: ['instances', 'one', id], queryFn: () => readDetail(id) });
}

export function InstancePanel({ id, onClose }: { id: string; onClose: () => void }) {
  const { t } = useText();
  const [wanted, setTab] = useAddressValue('tab');
  const tab = oneOf(wanted ?? undefined, TABS) ?? 'overview';
  const instance = useInstance(id);
  const Body = BODIES[tab];
  const { mayNot } = useRights();
  // One that the address names stays, and says why it is empty.
  const tabs = TABS.filter((value) => {
    const needs = NEEDS[value];
    return needs === undefined || value === tab || !mayNot(needs);
  });
  const needed = NEEDS[tab];
  const retry = () => void instance.refetch();
  const close = () => {
    setTab(null);
    onClose();
  };
  return (
    <Tabs
      label={t('instances.parts')}
      tabs={tabs.map((value) => ({ value, label: t(`instances.tab.${value}`) }))}
      value={tab}
      onChange={setTab}
      className="px-3"
    >
      {(bar, content) => (
        <SidePanel
          open
          onClose={close}
          title={instance.data?.name ?? id}
          lead={
            instance.data && (
              <span className="flex flex-wrap items-center gap-x-3">
                <span className="text-ink">
                  <HealthStatus health={instance.data.health_status} />
                </span>
                <span className="font-mono text-xs">{id}</span>
                <RunsAs instance={instance.data} />
                <CellBadge instance={instance.data} />
                <HeldBadge instance={instance.data} />
              </span>
            )
          }
          bar={bar}
          actions={instance.data && <Actions instance={instance.data} onDeleted={close} />}
        >
          {content(
            instance.data ? (
              <ErrorBoundary resetOn={tab} fallback={(reset) => <ErrorState error={null} onRetry={reset} />}>
                {instance.isError && (
                  <StaleBar since={instance.dataUpdatedAt} busy={instance.isFetching} onRetry={retry} />
                )}
                {needed === undefined ? (
                  <Body instance={instance.data} />
                ) : (
                  <Allowed to={needed}>
                    <Body instance={instance.data} />
                  </Allowed>
                )}
              </ErrorBoundary>
            ) : instance.isError ? (
              <ErrorState error={instance.error} onRetry={retry} />
            ) : (
              <Skeleton lines={8} />
            ),
          )}
        </SidePanel>
      )}
    </Tabs>
  );
}

const ACTIONS = [
  { kind: 'restart', icon: RotateCw },
  { kind: 'models', icon: RefreshCw },
  { kind: 'upgrade', icon: ArrowUpCircle },
] as const;

function Actions({ instance, onDeleted }: { instance: InstanceDetail; onDeleted: () => void }) {
  const { t } = useText();
  const [batch, setBatch] = useState<BatchKind | null>(null);
  const [deleting, setDeleting] = useState(false);
  const { may } = useRights();
  const batches = useBatches();
  const entries = [
    ...ACTIONS.filter(({ kind }) => batches.includes(kind)).map(({ kind, icon }) => ({
      label: t(`batch.${kind}`),
      icon,
      run: () => setBatch(kind),
    })),
    ...(may('instances.manage')
      ? [{ label: t('instances.delete'), icon: Trash2, danger: true, run: () => setDeleting(true) }]
      : []),
  ];
  if (entries.length === 0) return null;
  return (
    <>
      <Menu label={t('instances.actionsOf', { name: instance.name })} entries={entries} />
      {batch && <InstanceBatch kind={batch} instances={[instance]} onClose={() => setBatch(null)} />}
      {deleting && (
        <DeleteInstance instance={instance} onClose={() => setDeleting(false)} onDone={onDeleted} />
      )}
    </>
  );
}
