// The marketplace's items: skills, role packs and configurations that employees install on their assistants.
import { useQueryClient } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { RelativeTime } from '@tidepool/shared/i18n/time';
import { Page } from '@tidepool/shared/shell/page';
import type { Column } from '@tidepool/shared/table/columns';
import { DataTable } from '@tidepool/shared/table/data-table';
import { useAddressValue, useTableState } from '@tidepool/shared/table/table-state';
import { Badge } from '@tidepool/shared/ui/badge';
import { Button } from '@tidepool/shared/ui/button';
import { Confirm } from '@tidepool/shared/ui/confirm';
import { Menu } from '@tidepool/shared/ui/menu';
import { Plus, Trash2 } from 'lucide-react';
import { useMemo, useState } from 'react';
import { api } from '../api';
import { useFormat } from '../format';
import { useList } from '../lists';
import { ItemPanel } from '../market/panel';
import { useMay } from '../me';
import { useText } from '../messages';
import { FilterChip } from '../parts/filter-chip';
import { ITEM_TYPES, oneOf, type ListedItem } from '../records';

const keyOf = (one: ListedItem) => one.id;

export default function Marketplace() {
  const { t, number } = useText();
  const format = useFormat();
  const client = useQueryClient();
  const state = useTableState(['type', 'is_active']);
  const [opened, setOpened] = useAddressValue('open');
  const mayManage = useMay('marketplace.manage');
  const [deleting, setDeleting] = useState<ListedItem | null>(null);
  const { query, fetchPage } = useList('market', state, (paging, filters) =>
    unwrap(
      api.GET('/marketplace-items', {
        params: {
          query: {
            ...paging,
            type: oneOf(filters.type, ITEM_TYPES),
            is_active: filters.is_active === undefined ? undefined : Number(filters.is_active),
          },
        },
      }),
    ),
  );
  const columns = useMemo<Column<ListedItem>[]>(
    () => [
      {
        key: 'name',
        label: t('market.name'),
        wrap: true,
        sort: 'name',
        csv: (one) => one.name,
        cell: (one) => (
          <span className="flex items-center gap-3">
            <span aria-hidden="true" className="text-lg">
              {one.icon || '📦'}
            </span>
            <span className="min-w-0">
              {one.name}
              <span className="line-clamp-1 text-xs font-normal text-muted">{one.description}</span>
            </span>
          </span>
        ),
      },
      {
        key: 'type',
        label: t('market.type'),
        sort: 'type',
        csv: (one) => one.type,
        cell: (one) => t(`market.${one.type}`),
      },
      {
        key: 'version',
        label: t('market.version'),
        sort: 'version',
        csv: (one) => one.version,
        cell: (one) => one.version,
      },
      {
        key: 'files',
        label: t('market.files'),
        csv: (one) => one.file_count,
        cell: (one) => (
          <span className="whitespace-nowrap text-muted">
            {number(one.file_count)} · {format.bytes(one.size)}
          </span>
        ),
      },
      {
        key: 'findings',
        label: t('market.findings'),
        csv: (one) => one.finding_count,
        cell: (one) =>
          one.finding_count > 0 ? (
            <Badge tone="warn">{number(one.finding_count)}</Badge>
          ) : (
            <span className="text-muted">{t('market.noFindings')}</span>
          ),
      },
      {
        key: 'installs',
        label: t('market.installs'),
        sort: 'install_count',
        end: true,
        csv: (one) => one.install_count,
        cell: (one) => number(one.install_count),
      },
      {
        key: 'active',
        label: t('market.offered'),
        sort: 'is_active',
        csv: (one) => one.is_active,
        cell: (one) => (
          <Badge tone={one.is_active === 1 ? 'good' : 'none'}>
            {t(one.is_active === 1 ? 'market.isOffered' : 'market.isHidden')}
          </Badge>
        ),
      },
      {
        key: 'updated',
        label: t('market.updated'),
        sort: 'updated_at',
        extra: true,
        csv: (one) => one.updated_at,
        cell: (one) => <RelativeTime at={one.updated_at} />,
      },
    ],
    [t, number, format],
  );
  return (
    <Page
      wide
      title={t('nav.marketplace')}
      action={
        mayManage && (
          <Button look="primary" onClick={() => setOpened('new')}>
            <Plus className="size-4" aria-hidden="true" />
            {t('market.add')}
          </Button>
        )
      }
    >
      <DataTable
        id="marketplace"
        caption={t('nav.marketplace')}
        columns={columns}
        query={query}
        state={state}
        rowKey={keyOf}
        onOpen={(one) => setOpened(one.id)}
        search={t('market.search')}
        filters={
          <>
            <FilterChip
              state={state}
              name="type"
              label={t('market.type')}
              choices={ITEM_TYPES.map((value) => ({ value, label: t(`market.${value}`) }))}
            />
            <FilterChip
              state={state}
              name="is_active"
              label={t('market.offered')}
              choices={[
                { value: '1', label: t('market.isOffered') },
                { value: '0', label: t('market.isHidden') },
              ]}
            />
          </>
        }
        fetchPage={fetchPage}
        rowActions={
          mayManage
            ? (one) => (
                <Menu
                  label={t('professions.actionsOf', { name: one.name })}
                  entries={[
                    { label: t('market.delete'), icon: Trash2, danger: true, run: () => setDeleting(one) },
                  ]}
                />
              )
            : undefined
        }
        empty={{ title: t('market.none'), text: t('market.noneText') }}
      />
      {opened !== null && (mayManage || opened !== 'new') && (
        <ItemPanel key={opened} id={opened} onClose={() => setOpened(null)} />
      )}
      {deleting && (
        <Confirm
          title={t('market.deleteTitle', { name: deleting.name })}
          name={deleting.name}
          confirm={t('market.delete')}
          run={() => unwrap(api.DELETE('/marketplace-items/{id}', { params: { path: { id: deleting.id } } }))}
          onDone={() => void client.invalidateQueries({ queryKey: ['market'] })}
          onClose={() => setDeleting(null)}
        >
          <p>{t('market.deleteText', { count: number(deleting.install_count) })}</p>
        </Confirm>
      )}
    </Page>
  );
}
