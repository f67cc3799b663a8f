// Sub keys: what each may spend and has spent, whether it opens the gateway now; made, synced and deleted here.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { errorText } from '@tidepool/shared/api/error-text';
import { RelativeTime } from '@tidepool/shared/i18n/time';
import type { Column } from '@tidepool/shared/table/columns';
import { DataTable } from '@tidepool/shared/table/data-table';
import { useTableState } from '@tidepool/shared/table/table-state';
import { Badge } from '@tidepool/shared/ui/badge';
import { Button } from '@tidepool/shared/ui/button';
import { Combobox, type Found } from '@tidepool/shared/ui/combobox';
import { Confirm } from '@tidepool/shared/ui/confirm';
import { Dialog } from '@tidepool/shared/ui/dialog';
import { Field } from '@tidepool/shared/ui/field';
import { FieldProblems } from '@tidepool/shared/ui/field-problems';
import { fieldText } from '@tidepool/shared/ui/form';
import { Menu } from '@tidepool/shared/ui/menu';
import { Notice } from '@tidepool/shared/ui/notice';
import { readNumbers } from '@tidepool/shared/ui/number';
import { NumberField } from '@tidepool/shared/ui/number-field';
import { toast } from '@tidepool/shared/ui/toast';
import { Plus, RefreshCw, Trash2 } from 'lucide-react';
import { useMemo, useState } from 'react';
import { api } from '../api';
import { useFormat } from '../format';
import { useList } from '../lists';
import { useMay, useRights } from '../me';
import { useText } from '../messages';
import { FormDialog } from '../parts/form-dialog';
import { findInstances } from '../parts/pickers';
import type { Key, MadeKey } from '../records';

/** The gateway's unit: so many are one dollar. */
const UNITS = 500_000;
const keyOf = (one: Key) => one.id;

export function KeyTable() {
  const i18n = useText();
  const { t } = i18n;
  const client = useQueryClient();
  const { may } = useRights();
  const state = useTableState([]);
  const [making, setMaking] = useState(false);
  const [secret, setSecret] = useState<string | null>(null);
  const [deleting, setDeleting] = useState<Key | null>(null);
  const changed = () => void client.invalidateQueries({ queryKey: ['keys'] });
  const sync = useMutation({
    mutationFn: (key: Key) => unwrap(api.POST('/keys/{id}/sync', { params: { path: { id: key.id } } })),
    onSuccess: (key) => {
      changed();
      if (key.drift_quota) toast('unknown', t('keys.drifted', { name: key.name }));
      else toast('success', t('keys.synced', { name: key.name }));
    },
    onError: (error) => toast('error', errorText(error, i18n)),
  });
  const { query, fetchPage } = useList('keys', state, (paging) =>
    unwrap(api.GET('/keys', { params: { query: paging } })),
  );
  const columns = useKeyColumns();
  const mayDelete = (key: Key) => key.instance_id != null || may('keys.free');
  return (
    <>
      <DataTable
        id="keys"
        caption={t('keys.tab.keys')}
        columns={columns}
        query={query}
        state={state}
        rowKey={keyOf}
        search={t('keys.search')}
        filters={
          may('keys.manage') && (
            <Button size="small" look="primary" onClick={() => setMaking(true)}>
              <Plus className="size-4" aria-hidden="true" />
              {t('keys.add')}
            </Button>
          )
        }
        fetchPage={fetchPage}
        rowActions={
          may('keys.manage')
            ? (key) => (
                <Menu
                  label={t('professions.actionsOf', { name: key.name })}
                  entries={[
                    { label: t('keys.sync'), icon: RefreshCw, run: () => sync.mutate(key) },
                    ...(mayDelete(key)
                      ? [{ label: t('keys.delete'), icon: Trash2, danger: true, run: () => setDeleting(key) }]
                      : []),
                  ]}
                />
              )
            : undefined
        }
        empty={{ title: t('keys.none'), text: t('keys.noneText') }}
      />
      {making && (
        <MakeKey
          onClose={() => setMaking(false)}
          onDone={(made) => {
            changed();
            if (made) setSecret(made);
          }}
        />
      )}
      {secret !== null && (
        <Dialog open onClose={() => setSecret(null)} title={t('keys.secret')}>
          <Notice tone="warning">{t('keys.secretText')}</Notice>
          <code className="mt-3 block rounded-lg bg-sunken p-3 font-mono text-sm break-all">{secret}</code>
        </Dialog>
      )}
      {deleting && (
        <Confirm
          title={t('keys.deleteTitle', { name: deleting.name })}
          name={deleting.name}
          confirm={t('keys.delete')}
          run={() => unwrap(api.DELETE('/keys/{id}', { params: { path: { id: deleting.id } } }))}
          onDone={changed}
          onClose={() => setDeleting(null)}
        >
          <p>{t('keys.deleteText')}</p>
        </Confirm>
      )}
    </>
  );
}

function useKeyColumns(): Column<Key>[] {
  const { t } = useText();
  const format = useFormat();
  return useMemo(
    () => [
      {
        key: 'name',
        label: t('keys.name'),
        sort: 'name',
        csv: (one) => one.name,
        cell: (one) => (
          <>
            {one.name}
            <span className="block font-mono text-xs font-normal text-muted">{one.key}</span>
          </>
        ),
      },
      {
        key: 'state',
        label: t('keys.state'),
        csv: (one) => `${one.desired} / ${one.actual}`,
        cell: (one) => <KeyState of={one} />,
      },
      {
        key: 'today',
        label: t('keys.today'),
        end: true,
        csv: (one) => one.spend_today,
        cell: (one) => format.money(one.spend_today),
      },
      {
        key: 'month',
        label: t('keys.month'),
        end: true,
        csv: (one) => one.spend_month,
        cell: (one) => format.money(one.spend_month),
      },
      {
        key: 'limit',
        label: t('keys.limit'),
        end: true,
        csv: (one) => one.quota,
        cell: (one) =>
          one.quota == null ? (
            <span className="text-muted">{t('users.noLimit')}</span>
          ) : (
            format.money(one.quota / UNITS)
          ),
      },
      {
        key: 'used',
        label: t('keys.used'),
        sort: 'used_quota',
        end: true,
        csv: (one) => one.used_quota,
        cell: (one) => format.money(one.used_quota / UNITS),
      },
      {
        key: 'drift',
        label: t('keys.drift'),
        end: true,
        csv: (one) => one.drift_quota,
        cell: (one) =>
          one.drift_quota == null ? (
            <span className="text-muted">
              {t(one.last_checked_at ? 'keys.notComparable' : 'instances.never')}
            </span>
          ) : (
            <span className={one.drift_quota === 0 ? '' : 'font-medium text-warning'}>
              {format.money(one.drift_quota / UNITS)}
            </span>
          ),
      },
      {
        key: 'checked',
        label: t('instances.checked'),
        csv: (one) => one.last_checked_at,
        cell: (one) =>
          one.last_checked_at ? (
            <RelativeTime at={one.last_checked_at} />
          ) : (
            <span className="text-muted">{t('instances.never')}</span>
          ),
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
    [t, format],
  );
}

/** Whether the gateway takes the key now, what it should do, and why it does not yet. */
function KeyState({ of: one }: { of: Key }) {
  const { t } = useText();
  const stillOn = one.desired === 'off' && one.enabled;
  const stillOff = one.desired === 'on' && !one.enabled;
  return (
    <>
      <span className="flex flex-wrap gap-1">
        <Badge tone={one.enabled ? 'good' : 'bad'}>{t(one.enabled ? 'keys.opens' : 'keys.closed')}</Badge>
        {stillOn && <Badge tone="bad">{t('keys.shouldBeOff')}</Badge>}
        {stillOff && <Badge tone="warn">{t('keys.shouldBeOn')}</Badge>}
        {one.pending && !stillOn && !stillOff && <Badge tone="warn">{t('keys.pending')}</Badge>}
        {one.user_revoked && <Badge tone="warn">{t('keys.revoked')}</Badge>}
        {one.log_silent ? (
          <Badge tone="warn">{t('keys.logSilent')}</Badge>
        ) : (
          one.quota_spent && <Badge tone="warn">{t('keys.spent')}</Badge>
        )}
      </span>
      {one.problem !== '' && <span className="mt-1 block text-xs text-danger">{one.problem}</span>}
    </>
  );
}

interface MakeKeyProps {
  onClose: () => void;
  /** With the whole key, when it is told. */
  onDone: (secret: string | null) => void;
}

export function MakeKey({ onClose, onDone }: MakeKeyProps) {
  const i18n = useText();
  const { t } = i18n;
  const numbers = { quota: { min: 0.01, max: 1_000_000_000, decimals: 2, none: t('users.noLimit') } };
  const mayBeFree = useMay('keys.free');
  const [instance, setInstance] = useState<Found | null>(null);
  return (
    <FormDialog<MadeKey>
      title={t('keys.add')}
      lead={t('keys.addLead')}
      submit={t('keys.add')}
      onClose={onClose}
      onDone={(made) => onDone(made.secret ?? null)}
      send={(data) => {
        const { quota: dollars } = readNumbers(data, numbers, i18n);
        if (!mayBeFree && fieldText(data, 'instance_id') === '')
          throw new FieldProblems({ instance_id: t('keys.instanceNeeded') });
        return unwrap(
          api.POST('/keys', {
            body: {
              instance_id: fieldText(data, 'instance_id') || undefined,
              name: fieldText(data, 'name').trim() || undefined,
              quota: dollars === null ? undefined : Math.round(dollars * UNITS),
            },
          }),
        );
      }}
    >
      {(refused) => (
        <>
          <Combobox
            label={t('keys.instance')}
            name="instance_id"
            placeholder={t('instances.search')}
            error={refused('instance_id')}
            chosen={instance}
            onChoose={setInstance}
            queryKey={['instances', 'any']}
            search={findInstances}
          />
          {mayBeFree && instance === null && (
            <Field
              label={t('keys.ownName')}
              name="name"
              hint={t('keys.ownNameHint')}
              error={refused('name')}
            />
          )}
          <NumberField
            label={t('keys.limitUsd')}
            name="quota"
            spec={numbers.quota}
            hint={t('keys.limitHint')}
            error={refused('quota')}
          />
        </>
      )}
    </FormDialog>
  );
}
