// All employees: find, add, import, revoke; a row opens the person.
import { unwrap } from '@tidepool/shared/api/envelope';
import { RelativeTime } from '@tidepool/shared/i18n/time';
import { lazyPart } from '@tidepool/shared/lazy-part';
import { Page } from '@tidepool/shared/shell/page';
import type { Column } from '@tidepool/shared/table/columns';
import { DataTable } from '@tidepool/shared/table/data-table';
import { useAddressValue, useTableState } from '@tidepool/shared/table/table-state';
import { Status } from '@tidepool/shared/ui/badge';
import { Button } from '@tidepool/shared/ui/button';
import { SelectChip } from '@tidepool/shared/ui/select';
import { Plus, Upload } from 'lucide-react';
import { Suspense, useMemo, useState } from 'react';
import { api } from '../api';
import { useFormat } from '../format';
import { useList } from '../lists';
import { useMay } from '../me';
import { useText } from '../messages';
import { useStats } from '../overview/queries';
import { Batch } from '../parts/batch';
import { oneOf, type User } from '../records';
import { warnOfPending } from '../user/pending-keys';

// Loaded when they are opened: a page's first load has a limit.
const UserPanel = lazyPart(async () => ({ default: (await import('../user/panel')).UserPanel }));
const UserForm = lazyPart(async () => ({ default: (await import('../user/forms')).UserForm }));
const ImportUsers = lazyPart(async () => ({ default: (await import('../user/import')).ImportUsers }));

const STATUSES = ['active', 'revoked'] as const;
const keyOf = (one: User) => one.id;

export default function Users() {
  const { t } = useText();
  const state = useTableState(['status', 'department']);
  const [opened, setOpened] = useAddressValue('open');
  const [adding, setAdding] = useAddressValue('new');
  const [importing, setImporting] = useAddressValue('import');
  const [revoking, setRevoking] = useState<readonly User[] | null>(null);
  const columns = useUserColumns();
  const mayManage = useMay('people.manage');
  const departments = useStats('department', 30);
  const { query, fetchPage } = useList('users', state, (paging, filters) =>
    unwrap(
      api.GET('/users', {
        params: {
          query: { ...paging, status: oneOf(filters.status, STATUSES), department: filters.department },
        },
      }),
    ),
  );
  const { department } = state.filters;
  const known = new Set([
    ...(query.data?.list ?? []).map((user) => user.department),
    ...(departments.data?.stats ?? []).map((row) => row.key),
    ...(department ? [department] : []),
  ]);
  return (
    <Page
      wide
      title={t('nav.users')}
      action={
        mayManage && (
          <>
            <Button onClick={() => setImporting('1')}>
              <Upload className="size-4" aria-hidden="true" />
              {t('users.import')}
            </Button>
            <Button look="primary" onClick={() => setAdding('1')}>
              <Plus className="size-4" aria-hidden="true" />
              {t('users.add')}
            </Button>
          </>
        )
      }
    >
      <DataTable
        id="users"
        caption={t('nav.users')}
        columns={columns}
        query={query}
        state={state}
        rowKey={keyOf}
        onOpen={(one) => setOpened(one.id)}
        search={t('users.search')}
        filters={
          <>
            <SelectChip
              label={t('users.status')}
              value={state.filters.status ?? ''}
              onChange={(event) => state.set({ status: event.target.value })}
              choices={[
                { value: '', label: t('users.status') },
                ...STATUSES.map((value) => ({ value, label: t(`users.${value}`) })),
              ]}
            />
            <SelectChip
              label={t('users.department')}
              value={department ?? ''}
              onChange={(event) => state.set({ department: event.target.value })}
              choices={[
                { value: '', label: t('users.department') },
                ...[...known]
                  .filter(Boolean)
                  .sort()
                  .map((value) => ({ value, label: value })),
              ]}
            />
          </>
        }
        fetchPage={fetchPage}
        selectionActions={
          mayManage
            ? (selection) => (
                <Button size="small" look="danger" onClick={() => setRevoking(selection.rows)}>
                  {t('users.revoke')}
                </Button>
              )
            : undefined
        }
        empty={{ title: t('users.none'), text: t('users.noneText') }}
      />
      <Suspense fallback={null}>
        {opened !== null && <UserPanel key={opened} id={opened} onClose={() => setOpened(null)} />}
        {adding !== null && mayManage && <UserForm onClose={() => setAdding(null)} />}
        {importing !== null && mayManage && <ImportUsers onClose={() => setImporting(null)} />}
      </Suspense>
      {revoking && (
        <Batch
          title={t('users.revokeMany')}
          lead={t('users.revokeText')}
          confirm={t('users.revoke')}
          danger
          items={revoking.map((user) => ({
            id: user.id,
            label: user.email,
            effect: user.instance_name ?? t('users.noInstance'),
            skip: user.status === 'revoked' ? t('users.revoked') : undefined,
          }))}
          run={({ id }) =>
            unwrap(api.PATCH('/users/{id}', { params: { path: { id } }, body: { status: 'revoked' } })).then(
              (changed) => warnOfPending(changed.pending_keys, t),
            )
          }
          changes={['users']}
          onClose={() => setRevoking(null)}
        />
      )}
    </Page>
  );
}

function useUserColumns(): Column<User>[] {
  const { t, number } = useText();
  const format = useFormat();
  return useMemo(
    () => [
      {
        key: 'email',
        label: t('users.person'),
        sort: 'email',
        csv: (one) => one.email,
        cell: (one) => (
          <>
            {one.name || one.email}
            <span className="block text-xs font-normal text-muted">{one.email}</span>
          </>
        ),
      },
      {
        key: 'name',
        label: t('users.name'),
        sort: 'name',
        extra: true,
        csv: (one) => one.name,
        cell: (one) => one.name,
      },
      {
        key: 'department',
        label: t('users.department'),
        sort: 'department',
        csv: (one) => one.department,
        cell: (one) => one.department,
      },
      {
        key: 'status',
        label: t('users.status'),
        sort: 'status',
        csv: (one) => one.status,
        cell: (one) => (
          <Status tone={one.status === 'active' ? 'good' : 'bad'}>{t(`users.${one.status}`)}</Status>
        ),
      },
      {
        key: 'instance',
        label: t('users.instance'),
        csv: (one) => one.instance_id,
        cell: (one) => one.instance_name ?? <span className="text-muted">{t('users.noInstance')}</span>,
      },
      {
        key: 'quota',
        label: t('users.quota'),
        sort: 'quota_daily',
        end: true,
        csv: (one) => one.quota_daily,
        cell: (one) =>
          one.quota_daily === 0 ? (
            <span className="text-muted">{t('users.noLimit')}</span>
          ) : (
            format.short(one.quota_daily)
          ),
      },
      {
        key: 'tokens',
        label: t('instances.tokens'),
        end: true,
        csv: (one) => one.total_tokens,
        cell: (one) => <span title={number(one.total_tokens)}>{format.short(one.total_tokens)}</span>,
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
        key: 'cost',
        label: t('users.estimate'),
        end: true,
        csv: (one) => one.est_cost_usd,
        cell: (one) => `≈ ${format.money(one.est_cost_usd)}`,
      },
      {
        key: 'created',
        label: t('users.created'),
        sort: 'created_at',
        extra: true,
        csv: (one) => one.created_at,
        cell: (one) => <RelativeTime at={one.created_at} />,
      },
    ],
    [t, number, format],
  );
}
