// All servers, each with its latest measurements; a row leads to the server's page.
import { useQuery } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { RelativeTime } from '@tidepool/shared/i18n/time';
import { Page } from '@tidepool/shared/shell/page';
import type { Column } from '@tidepool/shared/table/columns';
import { DataTable } from '@tidepool/shared/table/data-table';
import { useAddressValue, useTableState } from '@tidepool/shared/table/table-state';
import { Badge, Status } from '@tidepool/shared/ui/badge';
import { Button } from '@tidepool/shared/ui/button';
import { SelectChip } from '@tidepool/shared/ui/select';
import { Plus } from 'lucide-react';
import { useMemo } from 'react';
import { useLocation } from 'wouter';
import { api } from '../api';
import { useFormat } from '../format';
import { useList } from '../lists';
import { useMay } from '../me';
import { useText } from '../messages';
import { oneOf, type Server } from '../records';
import { ServerForm } from '../server/form';
import { HostKeyTrust } from '../server/host-key';
import { OpenClaw } from '../server/openclaw';

const STATUSES = ['active', 'disabled'] as const;
const keyOf = (one: Server) => one.id;

export default function Servers() {
  const { t } = useText();
  const [, navigate] = useLocation();
  const state = useTableState(['status'], 'name');
  const [adding, setAdding] = useAddressValue('new');
  const columns = useServerColumns();
  const mayManage = useMay('servers.manage');
  const { query, fetchPage } = useList('servers', state, (paging, filters) =>
    unwrap(
      api.GET('/servers', { params: { query: { ...paging, status: oneOf(filters.status, STATUSES) } } }),
    ),
  );
  const page = (id: string) => `/servers/${encodeURIComponent(id)}`;
  return (
    <Page
      wide
      title={t('nav.servers')}
      action={
        mayManage && (
          <Button look="primary" onClick={() => setAdding('1')}>
            <Plus className="size-4" aria-hidden="true" />
            {t('servers.add')}
          </Button>
        )
      }
    >
      <DataTable
        id="servers"
        caption={t('nav.servers')}
        columns={columns}
        query={query}
        state={state}
        rowKey={keyOf}
        href={(one) => page(one.id)}
        search={t('servers.search')}
        filters={
          <SelectChip
            label={t('servers.status')}
            value={state.filters.status ?? ''}
            onChange={(event) => state.set({ status: event.target.value })}
            choices={[
              { value: '', label: t('servers.status') },
              ...STATUSES.map((value) => ({ value, label: t(`servers.${value}`) })),
            ]}
          />
        }
        fetchPage={fetchPage}
        empty={{ title: t('servers.none'), text: t('servers.noneText') }}
      />
      {adding !== null && mayManage && (
        <ServerForm onClose={() => setAdding(null)} onDone={(made) => navigate(page(made.id))} />
      )}
    </Page>
  );
}

function useServerColumns(): Column<Server>[] {
  const { t } = useText();
  return useMemo(
    () => [
      {
        key: 'name',
        label: t('servers.name'),
        sort: 'name',
        csv: (one) => one.name,
        cell: (one) => (
          <>
            {one.name}
            <span className="block text-xs font-normal text-muted">{one.id}</span>
          </>
        ),
      },
      {
        key: 'host',
        label: t('servers.host'),
        sort: 'host',
        csv: (one) => one.host,
        cell: (one) => (
          <code className="font-mono text-xs">
            {one.host === 'local' ? 'local' : `${one.ssh_user}@${one.host}:${one.ssh_port}`}
          </code>
        ),
      },
      {
        key: 'status',
        label: t('servers.status'),
        sort: 'status',
        csv: (one) => one.status,
        cell: (one) =>
          one.status === 'disabled' ? (
            <Badge>{t('servers.disabled')}</Badge>
          ) : one.host === 'local' || one.host_key !== '' ? (
            <Status tone="good">{t('servers.known')}</Status>
          ) : (
            <Status tone="none">{t('servers.untried')}</Status>
          ),
      },
      { key: 'load', label: t('servers.measured'), cell: (one) => <Measured id={one.id} /> },
      {
        key: 'openclaw',
        label: 'OpenClaw',
        csv: (one) => one.openclaw_version,
        cell: (one) => <OpenClaw server={one} />,
      },
      {
        key: 'host-key',
        label: t('servers.hostKey'),
        csv: (one) => one.host_key_trust,
        cell: (one) => <HostKeyTrust server={one} />,
      },
      {
        key: 'created',
        label: t('servers.created'),
        sort: 'created_at',
        extra: true,
        csv: (one) => one.created_at,
        cell: (one) => <RelativeTime at={one.created_at} />,
      },
    ],
    [t],
  );
}

function Measured({ id }: { id: string }) {
  const { t } = useText();
  const format = useFormat();
  const stats = useQuery({
    queryKey: ['metrics', 'latest', id],
    queryFn: () => unwrap(api.GET('/servers/{id}/stats', { params: { path: { id } } })),
  });
  const { cpu_percent: cpu, memory_percent: memory, disk_percent: disk } = stats.data ?? {};
  if (stats.data === undefined) return <span className="text-muted">…</span>;
  if (cpu == null || memory == null || disk == null)
    return <span className="text-muted">{t('servers.neverMeasured')}</span>;
  return (
    <span className="text-muted tabular-nums">
      {t('servers.cpu')} {format.percent(cpu)} · {t('servers.memory')} {format.percent(memory)} ·{' '}
      {t('servers.disk')} {format.percent(disk)}
    </span>
  );
}
