// The professions with their stock; a row opens its form.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { errorText } from '@tidepool/shared/api/error-text';
import { lazyPart } from '@tidepool/shared/lazy-part';
import type { Column } from '@tidepool/shared/table/columns';
import { DataTable } from '@tidepool/shared/table/data-table';
import { useTableState } from '@tidepool/shared/table/table-state';
import { Badge } from '@tidepool/shared/ui/badge';
import { Button } from '@tidepool/shared/ui/button';
import { Confirm } from '@tidepool/shared/ui/confirm';
import { Menu } from '@tidepool/shared/ui/menu';
import { toast } from '@tidepool/shared/ui/toast';
import { Plus } from 'lucide-react';
import { Suspense, useMemo, useState } from 'react';
import { api } from '../api';
import { readProfessionLimits } from '../cell/queries';
import { useList } from '../lists';
import { useMay } from '../me';
import { useText } from '../messages';
import { StockBar } from '../overview/cards';
import { FilterChip } from '../parts/filter-chip';
import type { LimitValues, Profession } from '../records';
import { ProfessionLimits } from './limits';

// Loaded when it is opened: a page's first load has a limit.
const ProfessionForm = lazyPart(async () => ({ default: (await import('./form')).ProfessionForm }));

const keyOf = (one: Profession) => one.id;

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
      <Suspense fallback={null}>
        {editing && (
          <ProfessionForm
            profession={editing === 'new' ? undefined : editing}
            onClose={() => setEditing(null)}
          />
        )}
      </Suspense>
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
