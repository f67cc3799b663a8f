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
import { readNumbers } from '@tidepool/shared/ui/number';
import { NumberField } from '@tidepool/shared/ui/number-field';
import { SelectField } from '@tidepool/shared/ui/select';
import { CheckField, TextArea } from '@tidepool/shared/ui/text-area';
import { toast } from '@tidepool/shared/ui/toast';
import { Plus } from 'lucide-react';
import { useMemo, useState } from 'react';
import { api } from '../api';
import { readProfessionLimits } from '../cell/queries';
import { useList } from '../lists';
import { useMay } from '../me';
import { useText } from '../messages';
import { StockBar } from '../overview/cards';
import { changedFields } from '../parts/changed-fields';
import { FilterChip } from '../parts/filter-chip';
import { FormDialog } from '../parts/form-dialog';
import type { LimitValues, Profession } from '../records';
import { ProfessionLimits, ProfessionLimitsSummary } from './limits';

const keyOf = (one: Profession) => one.id;
const NUMBERS = { sort_order: { min: -1_000_000, max: 1_000_000 } };

export function ProfessionTable() {
  const i18n = useText();
  const { t } = i18n;
  const client = useQueryClient();
  const state = useTableState(['is_active']);
  const mayManage = useMay('pools.manage');
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
        key: 'ready',
        label: t('professions.ready'),
        end: true,
        csv: (one) => one.stock_ready,
        cell: (one) => (
          <span className={one.stock_ready === 0 ? 'font-medium text-danger' : ''}>{one.stock_ready}</span>
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
            {mayManage && (
              <Button size="small" look="primary" onClick={() => setEditing('new')}>
                <Plus className="size-4" aria-hidden="true" />
                {t('professions.add')}
              </Button>
            )}
          </>
        }
        fetchPage={fetchPage}
        rowActions={
          mayManage
            ? (one) => (
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
              )
            : undefined
        }
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

export function ProfessionForm({ profession, onClose }: { profession?: Profession; onClose: () => void }) {
  const i18n = useText();
  const { t } = i18n;
  const client = useQueryClient();
  const mayManage = useMay('pools.manage');
  const packs = useQuery({
    queryKey: ['market', 'role-packs'],
    queryFn: () =>
      unwrap(
        api.GET('/marketplace-items', { params: { query: { type: 'role_pack', page: 1, page_size: 200 } } }),
      ),
  });
  // The pack that it has stays chosen, whether or not the list has it.
  const current = profession?.role_pack_id ?? '';
  const known = (packs.data?.list ?? []).map((pack) => ({ value: pack.id, label: pack.name }));
  const isKnown = current === '' || known.some(({ value }) => value === current);
  return (
    <FormDialog
      title={
        profession === undefined
          ? t('professions.add')
          : mayManage
            ? t('professions.editTitle', { name: profession.name })
            : profession.name
      }
      submit={t(profession ? 'dialog.save' : 'professions.add')}
      readOnly={!mayManage}
      onClose={onClose}
      onDone={() => void client.invalidateQueries({ queryKey: ['pool'] })}
      send={(data) => {
        const body = {
          name: fieldText(data, 'name').trim(),
          icon: fieldText(data, 'icon').trim(),
          tagline: fieldText(data, 'tagline').trim(),
          description: fieldText(data, 'description'),
          ...readNumbers(data, NUMBERS, i18n),
          is_official: data.has('is_official') ? (1 as const) : (0 as const),
          is_active: data.has('is_active') ? (1 as const) : (0 as const),
        };
        const pack = fieldText(data, 'role_pack_id');
        if (!profession) {
          const code = fieldText(data, 'code').trim();
          return unwrap(
            api.POST('/professions', { body: { ...body, code, role_pack_id: pack || undefined } }),
          );
        }
        // Null takes the pack away.
        const patch = { ...body, role_pack_id: pack || null };
        return unwrap(
          api.PATCH('/professions/{id}', {
            params: { path: { id: profession.id } },
            body: changedFields<typeof patch>(profession, patch),
          }),
        );
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
            <NumberField
              label={t('professions.order')}
              name="sort_order"
              spec={NUMBERS.sort_order}
              value={profession?.sort_order ?? 0}
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
            defaultValue={current}
            choices={[
              { value: '', label: t('professions.noPack') },
              ...(isKnown ? [] : [{ value: current, label: current }]),
              ...known,
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
