// Who has which instance of which profession now.
import { unwrap } from '@tidepool/shared/api/envelope';
import { RelativeTime } from '@tidepool/shared/i18n/time';
import type { Column } from '@tidepool/shared/table/columns';
import { DataTable } from '@tidepool/shared/table/data-table';
import { useTableState } from '@tidepool/shared/table/table-state';
import { useMemo } from 'react';
import { api } from '../api';
import { useList } from '../lists';
import { useText } from '../messages';
import { useProfessionStock } from '../overview/queries';
import { DateChip, FilterChip } from '../parts/filter-chip';
import type { Claim } from '../records';

const keyOf = (one: Claim) => one.instance_id;

export function ClaimsTable() {
  const { t } = useText();
  const state = useTableState(['profession_id', 'start_date', 'end_date']);
  const professions = useProfessionStock();
  const { query, fetchPage } = useList('pool-claims', state, (paging, filters) =>
    unwrap(api.GET('/profession-claims', { params: { query: { ...paging, ...filters } } })),
  );
  const columns = useMemo<Column<Claim>[]>(
    () => [
      {
        key: 'user',
        label: t('users.person'),
        csv: (one) => one.user_email,
        cell: (one) => (
          <>
            {one.user_name || one.user_email}
            <span className="block text-xs font-normal text-muted">{one.user_email}</span>
          </>
        ),
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
        key: 'instance',
        label: t('pool.instance'),
        csv: (one) => one.instance_id,
        cell: (one) => one.instance_id,
      },
      {
        key: 'since',
        label: t('pool.since'),
        csv: (one) => one.allocated_at,
        cell: (one) => <RelativeTime at={one.allocated_at} />,
      },
    ],
    [t],
  );
  return (
    <DataTable
      id="claims"
      caption={t('professions.tab.claims')}
      columns={columns}
      query={query}
      state={state}
      rowKey={keyOf}
      href={(one) => `/instances?open=${encodeURIComponent(one.instance_id)}`}
      search={t('users.search')}
      filters={
        <>
          <FilterChip
            state={state}
            name="profession_id"
            label={t('pool.profession')}
            choices={(professions.data?.list ?? []).map((one) => ({ value: one.id, label: one.name }))}
          />
          <DateChip state={state} name="start_date" label={t('filter.from')} />
          <DateChip state={state} name="end_date" label={t('filter.to')} />
        </>
      }
      fetchPage={fetchPage}
      empty={{ title: t('claims.none'), text: t('claims.noneText') }}
    />
  );
}
