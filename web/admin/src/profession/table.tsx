// The professions with their stock; a row opens its form.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { errorText } from '@tidepool/shared/api/error-text';
import type { Column } from '@tidepool/shared/table/columns';
import { DataTable } from '@tidepool/shared/table/data-table';
import { useTableState } from '@tidepool/shared/table/table-state';
import { Badge } from '@tidepool/shared/ui/badge';
import { Button } from '@tidepool/shared/ui/button';
import { Confirm } from '@tidepool/shared/ui/confirm';
import { Field } from '@tidepool/shared/ui/field';
import { fieldText } from '@tidepool/shared/ui/form';
import { Menu } from '@tidepool/shared/ui/menu';
import { SelectField } from '@tidepool/shared/ui/select';
import { CheckField, TextArea } from '@tidepool/shared/ui/text-area';
import { toast } from '@tidepool/shared/ui/toast';
import { Plus } from 'lucide-react';
import { useMemo, useState } from 'react';
import { api } from '../api';
import { readProfessionLimits } from '../cell/queries';
import { useList } from '../lists';
import { useText } from '../messages';
import { StockBar } from '../overview/cards';
import { FilterChip } from '../parts/filter-chip';
import { FormDialog } from '../parts/form-dialog';
import type { LimitValues, Profession } from '../records';
import { ProfessionLimits, ProfessionLimitsSummary } from './limits';

const keyOf = (one: Profession) => one.id;

export function ProfessionTable() {
  const i18n = useText();
  const { t } = i18n;
  const client = useQueryClient();
  const state = useTableState(['is_active']);
  const [editing, setEditing] = useState<Profession | 'new' | null>(null);
  const [delisting, setDelisting] = useState<Profession | null>(null);
  const [limiting, setLimiting] = useState<{ profession: Profession; values: LimitValues } | null>(null);
  // The form begins with what is set now.
  const openLimits = useMutation({
    mutationFn: async (profession: Profession) => ({
      profession,
      values: await readProfessionLimits(profession.id),
    }),
    onSuccess: setLimiting,
    onError: (error) => toast('error', errorText(error, i18n)),
  });
  const { is_active: active } = state.filters;
  const { query, fetchPage } = useList('pool', state, (paging) =>
    unwrap(
      api.GET('/professions', {
        params: { query: { ...paging, is_active: active === undefined ? undefined : Number(active) } },
      }),
    ),
  );
  const columns = useMemo<Column<Profession>[]>(
    () => [
      {
        key: 'name',
        label: t('professions.name'),
        sort: 'name',
        csv: (one) => one.name,
        cell: (one) => (
          <span className="flex items-center gap-3">
            <span aria-hidden="true" className="text-lg">
              {one.icon}
            </span>
            <span>
              {one.name}
              <span className="block text-xs font-normal text-muted">{one.tagline}</span>
            </span>
          </span>
        ),
      },
      {
        key: 'code',
        label: t('professions.code'),
        sort: 'code',
        csv: (one) => one.code,
        cell: (one) => <code className="font-mono text-xs">{one.code}</code>,
      },
      {
        key: 'stock',
        label: t('professions.stock'),
        csv: (one) => one.stock_idle,
        cell: (one) => (
          <span className="flex items-center gap-3">
            <StockBar idle={one.stock_idle} allocated={one.stock_allocated} total={one.stock_total} />
            <span className={one.stock_idle === 0 ? 'font-medium text-danger' : ''}>
              {t('overview.idleOf', { idle: one.stock_idle, total: one.stock_total })}
            </span>
          </span>
        ),
      },
      {
        key: 'active',
        label: t('professions.listed'),
        csv: (one) => one.is_active,
        cell: (one) => (
          <span className="flex gap-1.5">
            <Badge tone={one.is_active === 1 ? 'good' : 'none'}>
              {t(one.is_active === 1 ? 'professions.isListed' : 'professions.isDelisted')}
            </Badge>
            {one.is_official === 1 && <Badge>{t('professions.official')}</Badge>}
          </span>
        ),
      },
      {
        key: 'order',
        label: t('professions.order'),
        sort: 'sort_order',
        end: true,
        csv: (one) => one.sort_order,
        cell: (one) => one.sort_order,
      },
    ],
    [t],
  );
  return (
    <>
      <DataTable
        id="professions"
        caption={t('nav.professions')}
        columns={columns}
        query={query}
        state={state}
        rowKey={keyOf}
        onOpen={setEditing}
        search={t('professions.search')}
        filters={
          <>
            <FilterChip
              state={state}
              name="is_active"
              label={t('professions.listed')}
              choices={[
                { value: '1', label: t('professions.isListed') },
                { value: '0', label: t('professions.isDelisted') },
              ]}
            />
            <Button size="small" look="primary" onClick={() => setEditing('new')}>
              <Plus className="size-4" aria-hidden="true" />
              {t('professions.add')}
            </Button>
          </>
        }
        fetchPage={fetchPage}
        rowActions={(one) => (
          <Menu
            label={t('professions.actionsOf', { name: one.name })}
            entries={[
              { label: t('instances.edit'), run: () => setEditing(one) },
              { label: t('cell.limits'), run: () => openLimits.mutate(one) },
              {
                label: t('professions.delist'),
                danger: true,
                disabled: one.is_active === 0,
                run: () => setDelisting(one),
              },
            ]}
          />
        )}
        empty={{ title: t('professions.none'), text: t('professions.noneText') }}
      />
      {editing && (
        <ProfessionForm
          profession={editing === 'new' ? undefined : editing}
          onClose={() => setEditing(null)}
        />
      )}
      {limiting && <ProfessionLimits {...limiting} onClose={() => setLimiting(null)} />}
      {delisting && (
        <Confirm
          title={t('professions.delistTitle', { name: delisting.name })}
          confirm={t('professions.delist')}
          run={() => unwrap(api.DELETE('/professions/{id}', { params: { path: { id: delisting.id } } }))}
          onDone={() => void client.invalidateQueries({ queryKey: ['pool'] })}
          onClose={() => setDelisting(null)}
        >
          <p>{t('professions.delistText', { count: delisting.stock_allocated })}</p>
        </Confirm>
      )}
    </>
  );
}

function ProfessionForm({ profession, onClose }: { profession?: Profession; onClose: () => void }) {
  const { t } = useText();
  const client = useQueryClient();
  const packs = useQuery({
    queryKey: ['market', 'role-packs'],
    queryFn: () =>
      unwrap(
        api.GET('/marketplace-items', { params: { query: { type: 'role_pack', page: 1, page_size: 200 } } }),
      ),
  });
  return (
    <FormDialog
      title={profession ? t('professions.editTitle', { name: profession.name }) : t('professions.add')}
      submit={t(profession ? 'dialog.save' : 'professions.add')}
      onClose={onClose}
      onDone={() => void client.invalidateQueries({ queryKey: ['pool'] })}
      send={(data) => {
        const body = {
          name: fieldText(data, 'name').trim(),
          icon: fieldText(data, 'icon').trim(),
          tagline: fieldText(data, 'tagline').trim(),
          description: fieldText(data, 'description'),
          role_pack_id: fieldText(data, 'role_pack_id') || null,
          sort_order: Number(fieldText(data, 'sort_order')) || 0,
          is_official: data.has('is_official') ? (1 as const) : (0 as const),
          is_active: data.has('is_active') ? (1 as const) : (0 as const),
        };
        return profession
          ? unwrap(api.PATCH('/professions/{id}', { params: { path: { id: profession.id } }, body }))
          : unwrap(api.POST('/professions', { body: { ...body, code: fieldText(data, 'code').trim() } }));
      }}
    >
      {(refused) => (
        <>
          <div className="grid gap-4 sm:grid-cols-2">
            <Field
              label={t('professions.name')}
              name="name"
              required
              defaultValue={profession?.name}
              error={refused('name')}
            />
            {profession ? (
              <Field
                label={t('professions.code')}
                defaultValue={profession.code}
                readOnly
                hint={t('professions.codeFixed')}
              />
            ) : (
              <Field
                label={t('professions.code')}
                name="code"
                required
                hint={t('professions.codeHint')}
                error={refused('code')}
              />
            )}
            <Field
              label={t('professions.icon')}
              name="icon"
              required
              defaultValue={profession?.icon}
              hint={t('professions.iconHint')}
              error={refused('icon')}
            />
            <Field
              label={t('professions.order')}
              name="sort_order"
              inputMode="numeric"
              defaultValue={profession?.sort_order ?? 0}
              error={refused('sort_order')}
            />
          </div>
          <Field
            label={t('professions.tagline')}
            name="tagline"
            required
            defaultValue={profession?.tagline}
            error={refused('tagline')}
          />
          <TextArea
            label={t('professions.description')}
            name="description"
            rows={3}
            defaultValue={profession?.description}
          />
          <SelectField
            key={packs.data?.total}
            label={t('professions.pack')}
            name="role_pack_id"
            defaultValue={profession?.role_pack_id ?? ''}
            choices={[
              { value: '', label: t('professions.noPack') },
              ...(packs.data?.list ?? []).map((pack) => ({ value: pack.id, label: pack.name })),
            ]}
          />
          <CheckField
            label={t('professions.isListed')}
            name="is_active"
            defaultChecked={profession?.is_active !== 0}
          />
          <CheckField
            label={t('professions.official')}
            name="is_official"
            defaultChecked={profession?.is_official === 1}
          />
          {profession && <ProfessionLimitsSummary profession={profession} />}
        </>
      )}
    </FormDialog>
  );
}
