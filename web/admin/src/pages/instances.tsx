// All instances: find them, see how they are, act on many at once; a row opens its panel.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { errorText } from '@tidepool/shared/api/error-text';
import { RelativeTime } from '@tidepool/shared/i18n/time';
import { lazyPart } from '@tidepool/shared/lazy-part';
import { Page } from '@tidepool/shared/shell/page';
import type { Column } from '@tidepool/shared/table/columns';
import { DataTable } from '@tidepool/shared/table/data-table';
import { useAddressValue, useTableState } from '@tidepool/shared/table/table-state';
import { Badge } from '@tidepool/shared/ui/badge';
import { Button } from '@tidepool/shared/ui/button';
import { Menu } from '@tidepool/shared/ui/menu';
import { SelectChip } from '@tidepool/shared/ui/select';
import { toast } from '@tidepool/shared/ui/toast';
import { HeartPulse, Plus } from 'lucide-react';
import { Suspense, useMemo, useState } from 'react';
import { api } from '../api';
import { useFormat } from '../format';
import { InstanceBatch, useBatches, type BatchKind } from '../instance/batches';
import { useList } from '../lists';
import { useMay } from '../me';
import { useText } from '../messages';
import { useServerList } from '../overview/queries';
import { CellBadge, CellStatus, whyNoEntry } from '../parts/cell';
import { Email } from '../parts/email';
import { HealthStatus } from '../parts/health';
import { HeldBadge } from '../parts/held';
import { isOffered, RunsAs } from '../parts/runs-as';
import { HEALTHS, oneOf, type Instance } from '../records';

/** Opened often, but never first: its tabs would weigh on the list. */
const InstancePanel = lazyPart(async () => ({ default: (await import('../instance/panel')).InstancePanel }));
const CreateInstance = lazyPart(async () => ({
  default: (await import('../instance/panel')).CreateInstance,
}));

const FILTERS = ['health_status', 'server_id', 'assigned', 'pooled'];
const flag = (value: string | undefined) => (value === undefined ? undefined : value === 'true');

function useInstanceColumns(): Column<Instance>[] {
  const { t, number } = useText();
  const format = useFormat();
  return useMemo(
    () => [
      {
        key: 'name',
        label: t('instances.name'),
        sort: 'name',
        csv: (one) => one.name,
        cell: (one) => (
          <>
            {one.name}
            <span className="block text-xs font-normal text-muted">{one.id}</span>
            <span className="flex flex-wrap gap-1">
              <RunsAs instance={one} />
              <CellBadge instance={one} />
              <HeldBadge instance={one} />
            </span>
          </>
        ),
      },
      {
        key: 'health',
        label: t('instances.health'),
        sort: 'health_status',
        csv: (one) => one.health_status,
        cell: (one) => <HealthStatus health={one.health_status} />,
      },
      {
        key: 'assigned',
        label: t('instances.assigned'),
        csv: (one) => one.assigned_email,
        cell: (one) =>
          one.assigned_email ? (
            <Email address={one.assigned_email} />
          ) : one.pooled ? (
            <Badge>{t('instances.pooled')}</Badge>
          ) : (
            <span className="text-muted">{t(isOffered(one) ? 'instances.free' : 'instances.isFree')}</span>
          ),
      },
      {
        key: 'server',
        label: t('instances.server'),
        sort: 'server_id',
        csv: (one) => one.server_name,
        cell: (one) => one.server_name,
      },
      {
        key: 'model',
        label: t('instances.model'),
        sort: 'model',
        csv: (one) => one.model,
        cell: (one) => one.model,
      },
      {
        key: 'tokens',
        label: t('instances.tokens'),
        sort: 'total_tokens',
        end: true,
        csv: (one) => one.total_tokens,
        cell: (one) => <span title={number(one.total_tokens)}>{format.short(one.total_tokens)}</span>,
      },
      {
        key: 'checked',
        label: t('instances.checked'),
        sort: 'last_health_at',
        csv: (one) => one.last_health_at,
        cell: (one) =>
          one.last_health_at ? (
            <RelativeTime at={one.last_health_at} />
          ) : (
            <span className="text-muted">{t('instances.never')}</span>
          ),
      },
      {
        key: 'requests',
        label: t('instances.requests'),
        end: true,
        extra: true,
        csv: (one) => one.total_requests,
        cell: (one) => number(one.total_requests),
      },
      {
        key: 'port',
        label: t('instances.port'),
        sort: 'gateway_port',
        end: true,
        extra: true,
        csv: (one) => one.gateway_port,
        cell: (one) => one.gateway_port,
      },
      {
        key: 'runs-as',
        label: t('instances.runsAs'),
        extra: true,
        csv: (one) => one.runs_as,
        cell: (one) => one.runs_as,
      },
      {
        key: 'cell',
        label: t('cell.column'),
        extra: true,
        csv: (one) => one.cell,
        cell: (one) => <CellStatus state={one.cell} />,
      },
      {
        key: 'disk',
        label: t('cell.disk'),
        end: true,
        extra: true,
        csv: (one) => one.home_bytes,
        cell: (one) =>
          one.home_bytes == null ? (
            <span className="text-muted">{t('cell.diskUnknown')}</span>
          ) : (
            format.bytes(one.home_bytes)
          ),
      },
      {
        key: 'fails',
        label: t('instances.fails'),
        end: true,
        extra: true,
        csv: (one) => one.health_fail_count,
        cell: (one) => number(one.health_fail_count),
      },
      {
        key: 'created',
        label: t('instances.createdAt'),
        sort: 'created_at',
        extra: true,
        csv: (one) => one.created_at,
        cell: (one) => <RelativeTime at={one.created_at} />,
      },
    ],
    [t, number, format],
  );
}

const keyOf = (one: Instance) => one.id;

export default function Instances() {
  const { t } = useText();
  const state = useTableState(FILTERS);
  const [opened, setOpened] = useAddressValue('open');
  const [adding, setAdding] = useAddressValue('new');
  const [batch, setBatch] = useState<{ kind: BatchKind; instances: readonly Instance[] } | null>(null);
  const columns = useInstanceColumns();
  const mayManage = useMay('instances.manage');
  const batches = useBatches();
  const { query, fetchPage } = useList('instances', state, (paging, filters) =>
    unwrap(
      api.GET('/instances', {
        params: {
          query: {
            ...paging,
            health_status: oneOf(filters.health_status, HEALTHS),
            server_id: filters.server_id,
            assigned: flag(filters.assigned),
            pooled: flag(filters.pooled),
          },
        },
      }),
    ),
  );
  return (
    <Page
      wide
      title={t('nav.instances')}
      action={
        mayManage && (
          <>
            <CheckAll />
            <Button look="primary" onClick={() => setAdding('1')}>
              <Plus className="size-4" aria-hidden="true" />
              {t('instances.add')}
            </Button>
          </>
        )
      }
    >
      <DataTable
        id="instances"
        caption={t('nav.instances')}
        columns={columns}
        query={query}
        state={state}
        rowKey={keyOf}
        onOpen={(one) => setOpened(one.id)}
        search={t('instances.search')}
        filters={<Filters state={state} />}
        fetchPage={fetchPage}
        selectionActions={
          batches.length === 0
            ? undefined
            : (selection) =>
                batches.map((kind) => (
                  <Button
                    key={kind}
                    size="small"
                    onClick={() => setBatch({ kind, instances: selection.rows })}
                  >
                    {t(`batch.${kind}`)}
                  </Button>
                ))
        }
        rowActions={
          batches.length === 0
            ? undefined
            : (one) => (
                <Menu
                  label={t('instances.actionsOf', { name: one.name })}
                  entries={batches
                    .filter((kind) => kind !== 'cells' || whyNoEntry(one) === null)
                    .map((kind) => ({
                      label: t(kind === 'cells' ? 'cell.enter' : `batch.${kind}`),
                      run: () => setBatch({ kind, instances: [one] }),
                    }))}
                />
              )
        }
        empty={{ title: t('instances.none'), text: t('instances.noneText') }}
      />
      <Suspense fallback={null}>
        {opened !== null && <InstancePanel key={opened} id={opened} onClose={() => setOpened(null)} />}
        {adding !== null && mayManage && (
          <CreateInstance onClose={() => setAdding(null)} onDone={(made) => setOpened(made.id)} />
        )}
      </Suspense>
      {batch && <InstanceBatch {...batch} onClose={() => setBatch(null)} />}
    </Page>
  );
}

function Filters({ state }: { state: ReturnType<typeof useTableState> }) {
  const { t } = useText();
  const servers = useServerList();
  const yesNo = (yes: string, no: string) => [
    { value: 'true', label: yes },
    { value: 'false', label: no },
  ];
  const chip = (name: string, label: string, choices: { value: string; label: string }[]) => (
    <SelectChip
      label={label}
      value={state.filters[name] ?? ''}
      onChange={(event) => state.set({ [name]: event.target.value })}
      choices={[{ value: '', label }, ...choices]}
    />
  );
  return (
    <>
      {chip(
        'health_status',
        t('instances.health'),
        HEALTHS.map((value) => ({ value, label: t(`health.${value}`) })),
      )}
      {chip(
        'server_id',
        t('instances.server'),
        (servers.data?.list ?? []).map((one) => ({ value: one.id, label: one.name })),
      )}
      {chip('assigned', t('instances.assignment'), yesNo(t('instances.isAssigned'), t('instances.isFree')))}
      {chip('pooled', t('instances.pool'), yesNo(t('instances.inPool'), t('instances.notInPool')))}
    </>
  );
}

/** Asks every instance at once how it is. */
function CheckAll() {
  const i18n = useText();
  const { t } = i18n;
  const client = useQueryClient();
  const check = useMutation({
    mutationFn: () => unwrap(api.GET('/instances/health-check')),
    onSuccess: ({ list }) => {
      void client.invalidateQueries({ queryKey: ['instances'] });
      toast('success', t('instances.checkedAll', { count: list.length }));
    },
    onError: (error) => toast('error', errorText(error, i18n)),
  });
  return (
    <Button busy={check.isPending} onClick={() => check.mutate()}>
      {!check.isPending && <HeartPulse className="size-4" aria-hidden="true" />}
      {t('instances.checkAll')}
    </Button>
  );
}
