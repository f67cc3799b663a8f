// The pool: which instance stands ready for which profession, and the ways in, out and back.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { errorText } from '@tidepool/shared/api/error-text';
import { RelativeTime } from '@tidepool/shared/i18n/time';
import type { Column } from '@tidepool/shared/table/columns';
import { DataTable } from '@tidepool/shared/table/data-table';
import { useTableState } from '@tidepool/shared/table/table-state';
import { Status, type Tone } from '@tidepool/shared/ui/badge';
import { Button } from '@tidepool/shared/ui/button';
import { Combobox, type Found } from '@tidepool/shared/ui/combobox';
import { Confirm } from '@tidepool/shared/ui/confirm';
import { fieldText } from '@tidepool/shared/ui/form';
import { Menu, type MenuEntry } from '@tidepool/shared/ui/menu';
import { SelectField } from '@tidepool/shared/ui/select';
import { toast } from '@tidepool/shared/ui/toast';
import { Plus } from 'lucide-react';
import { useMemo, useState } from 'react';
import { Link } from 'wouter';
import { api } from '../api';
import { useList } from '../lists';
import { useMay } from '../me';
import { useText } from '../messages';
import { useProfessionStock } from '../overview/queries';
import { Email } from '../parts/email';
import { FilterChip } from '../parts/filter-chip';
import { FormDialog } from '../parts/form-dialog';
import { findFreeInstances } from '../parts/pickers';
import { isNeverCleaned, RunsAs } from '../parts/runs-as';
import { ENTRY_STATUSES, oneOf, type Entry, type Instance } from '../records';

const TONES: Record<Entry['status'], Tone> = { idle: 'good', allocated: 'busy', maintenance: 'warn' };
const keyOf = (one: Entry) => one.id;

export function PoolTable() {
  const i18n = useText();
  const { t } = i18n;
  const client = useQueryClient();
  const state = useTableState(['status', 'profession_id']);
  const professions = useProfessionStock();
  const mayManage = useMay('pools.manage');
  const [adding, setAdding] = useState(false);
  const [asking, setAsking] = useState<{ entry: Entry; what: 'reclaim' | 'remove' } | null>(null);
  const changed = () => {
    for (const root of ['pool', 'instances', 'tasks']) void client.invalidateQueries({ queryKey: [root] });
  };
  const setStatus = (entry: Entry, status: 'idle' | 'maintenance') =>
    unwrap(api.PATCH('/profession-pool/{id}', { params: { path: { id: entry.id } }, body: { status } }));
  const move = useMutation({
    mutationFn: ({ entry, status }: { entry: Entry; status: 'idle' | 'maintenance' }) =>
      setStatus(entry, status),
    onSuccess: changed,
    onError: (error) => toast('error', errorText(error, i18n)),
  });
  const { query, fetchPage } = useList('pool-entries', state, (paging, filters) =>
    unwrap(
      api.GET('/profession-pool', {
        params: {
          query: {
            ...paging,
            status: oneOf(filters.status, ENTRY_STATUSES),
            profession_id: filters.profession_id,
          },
        },
      }),
    ),
  );
  const refused = useNotOffered();
  const columns = usePoolColumns(refused);
  const isKept = (entry: Entry) => {
    const instance = refused.get(entry.instance_id);
    return instance !== undefined && isNeverCleaned(instance);
  };
  const entries = (entry: Entry): MenuEntry[] =>
    entry.status === 'allocated'
      ? [{ label: t('pool.reclaim'), danger: true, run: () => setAsking({ entry, what: 'reclaim' }) }]
      : [
          entry.status === 'idle'
            ? { label: t('pool.toMaintenance'), run: () => move.mutate({ entry, status: 'maintenance' }) }
            : {
                label: t('pool.toIdle'),
                reason: refused.has(entry.instance_id) ? t('pool.notOffered') : undefined,
                run: () => move.mutate({ entry, status: 'idle' }),
              },
          { label: t('pool.remove'), danger: true, run: () => setAsking({ entry, what: 'remove' }) },
        ];
  return (
    <>
      <DataTable
        id="pool"
        caption={t('professions.tab.pool')}
        columns={columns}
        query={query}
        state={state}
        rowKey={keyOf}
        search={t('pool.search')}
        filters={
          <>
            <FilterChip
              state={state}
              name="status"
              label={t('pool.status')}
              choices={ENTRY_STATUSES.map((value) => ({ value, label: t(`pool.${value}`) }))}
            />
            <FilterChip
              state={state}
              name="profession_id"
              label={t('pool.profession')}
              choices={(professions.data?.list ?? []).map((one) => ({ value: one.id, label: one.name }))}
            />
            {mayManage && (
              <Button size="small" look="primary" onClick={() => setAdding(true)}>
                <Plus className="size-4" aria-hidden="true" />
                {t('pool.add')}
              </Button>
            )}
          </>
        }
        fetchPage={fetchPage}
        rowActions={
          mayManage
            ? (entry) => (
                <Menu
                  label={t('professions.actionsOf', { name: entry.instance_id })}
                  entries={entries(entry)}
                />
              )
            : undefined
        }
        empty={{ title: t('pool.none'), text: t('pool.noneText') }}
      />
      {adding && (
        <AddEntry
          professions={professions.data?.list ?? []}
          onClose={() => setAdding(false)}
          onDone={changed}
        />
      )}
      {asking && (
        <Confirm
          title={t(asking.what === 'reclaim' ? 'pool.reclaimTitle' : 'pool.removeTitle', {
            name: asking.entry.instance_id,
          })}
          name={asking.what === 'reclaim' ? asking.entry.instance_id : undefined}
          confirm={t(`pool.${asking.what}`)}
          run={() =>
            asking.what === 'reclaim'
              ? setStatus(asking.entry, 'idle')
              : unwrap<unknown>(
                  api.DELETE('/profession-pool/{id}', { params: { path: { id: asking.entry.id } } }),
                )
          }
          onDone={changed}
          onClose={() => setAsking(null)}
        >
          <p>
            {asking.what === 'reclaim'
              ? t(isKept(asking.entry) ? 'pool.reclaimKeptText' : 'pool.reclaimText', {
                  email: asking.entry.allocated_email ?? '',
                })
              : t('pool.removeText', { profession: asking.entry.profession_name })}
          </p>
        </Confirm>
      )}
    </>
  );
}

/** Instances that are in a pool but must not be offered, by id. The entries themselves do not say why they are in maintenance. */
function useNotOffered(): ReadonlyMap<string, Instance> {
  const found = useQuery({
    queryKey: ['instances', 'pooled', 'not-offered'],
    queryFn: () =>
      unwrap(
        api.GET('/instances', {
          params: { query: { pooled: true, offered: false, page: 1, page_size: 200 } },
        }),
      ),
  });
  return useMemo(() => new Map((found.data?.list ?? []).map((one) => [one.id, one])), [found.data]);
}

function usePoolColumns(refused: ReadonlyMap<string, Instance>): Column<Entry>[] {
  const { t } = useText();
  return useMemo(
    () => [
      {
        key: 'instance',
        label: t('pool.instance'),
        sort: 'instance_id',
        csv: (one) => one.instance_id,
        cell: (one) => {
          const instance = refused.get(one.instance_id);
          return (
            <>
              <Link
                href={`/instances?open=${encodeURIComponent(one.instance_id)}`}
                className="rounded hover:text-accent"
              >
                {one.instance_id}
              </Link>
              {instance && (
                <span className="mt-0.5 block">
                  <RunsAs instance={instance} />
                </span>
              )}
            </>
          );
        },
      },
      {
        key: 'profession',
        label: t('pool.profession'),
        csv: (one) => one.profession_name,
        cell: (one) => (
          <>
            <span aria-hidden="true">{one.profession_icon}</span> {one.profession_name}
          </>
        ),
      },
      {
        key: 'status',
        label: t('pool.status'),
        sort: 'status',
        csv: (one) => one.status,
        cell: (one) => <Status tone={TONES[one.status]}>{t(`pool.${one.status}`)}</Status>,
      },
      {
        key: 'user',
        label: t('pool.user'),
        csv: (one) => one.allocated_email,
        cell: (one) => one.allocated_email && <Email address={one.allocated_email} />,
      },
      {
        key: 'since',
        label: t('pool.since'),
        sort: 'allocated_at',
        csv: (one) => one.allocated_at,
        cell: (one) => one.allocated_at && <RelativeTime at={one.allocated_at} />,
      },
      {
        key: 'server',
        label: t('instances.server'),
        extra: true,
        csv: (one) => one.server_id,
        cell: (one) => one.server_id,
      },
    ],
    [t, refused],
  );
}

interface AddEntryProps {
  professions: readonly { id: string; name: string }[];
  onClose: () => void;
  onDone: () => void;
}

function AddEntry({ professions, onClose, onDone }: AddEntryProps) {
  const { t } = useText();
  const [instance, setInstance] = useState<Found | null>(null);
  return (
    <FormDialog
      title={t('pool.add')}
      lead={t('pool.addLead')}
      submit={t('pool.add')}
      onClose={onClose}
      onDone={onDone}
      send={(data) =>
        unwrap(
          api.POST('/profession-pool', {
            body: {
              profession_id: fieldText(data, 'profession_id'),
              instance_id: fieldText(data, 'instance_id'),
            },
          }),
        )
      }
    >
      {(refused) => (
        <>
          <SelectField
            label={t('pool.profession')}
            name="profession_id"
            choices={professions.map((one) => ({ value: one.id, label: one.name }))}
          />
          <Combobox
            label={t('pool.instance')}
            name="instance_id"
            placeholder={t('instances.search')}
            error={refused('instance_id')}
            chosen={instance}
            onChoose={setInstance}
            queryKey={['instances', 'free']}
            search={findFreeInstances}
          />
        </>
      )}
    </FormDialog>
  );
}
