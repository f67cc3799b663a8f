// Usage by two things at once: which person used which model, a department's or an instance's models, a key's days.
import { unwrap } from '@tidepool/shared/api/envelope';
import type { Column } from '@tidepool/shared/table/columns';
import { DataTable } from '@tidepool/shared/table/data-table';
import { useTableState } from '@tidepool/shared/table/table-state';
import { Card } from '@tidepool/shared/ui/panel';
import { SelectChip } from '@tidepool/shared/ui/select';
import { useMemo } from 'react';
import { api } from '../api';
import { useFormat } from '../format';
import { useList } from '../lists';
import { useText } from '../messages';
import { DateChip } from '../parts/filter-chip';
import { saveServerFile } from '../parts/server-file';
import { oneOf } from '../records';
import { DepartmentsSince, UserName } from './holder';

const GROUPS = ['user', 'department', 'instance', 'key', 'model', 'provider', 'date'] as const;
type Group = (typeof GROUPS)[number];

interface Row {
  key: string;
  second_key?: string | null;
  instance?: string | null;
  unassigned: boolean;
  former_employee?: boolean | null;
  calls: number;
  tokens: number;
  cost_usd: number;
}

const keyOf = (row: Row) => JSON.stringify([row.unassigned, row.key, row.second_key]);
const OF_HOLDERS: readonly Group[] = ['user', 'department'];

export default function Breakdown() {
  const { t } = useText();
  const state = useTableState(['first', 'second', 'from', 'to']);
  const { from, to } = state.filters;
  const first = oneOf(state.filters.first, GROUPS) ?? 'user';
  const others = GROUPS.filter((group) => group !== first);
  const second = oneOf(state.filters.second, others) ?? (first === 'model' ? 'user' : 'model');
  const asked = { group_by: `${first},${second}`, from, to };
  const { query } = useList('usage', state, async ({ page, page_size }) => {
    const answer = await unwrap(api.GET('/llm-stats', { params: { query: { ...asked, page, page_size } } }));
    return { ...answer, list: answer.stats };
  });
  const columns = useBreakdownColumns(first, second);
  const answer = query.data as { departments_since?: string | null } | undefined;
  const choose = (name: string, label: string, value: Group, choices: readonly Group[]) => (
    <SelectChip
      label={label}
      value={value}
      onChange={(event) => state.set({ [name]: event.target.value })}
      choices={choices.map((one) => ({ value: one, label: t(`usage.by.${one}`) }))}
    />
  );
  return (
    <Card title={t('usage.breakdown')}>
      <DataTable
        id="usage"
        caption={`${t(`usage.by.${first}`)} × ${t(`usage.by.${second}`)}`}
        columns={columns}
        query={query}
        state={state}
        rowKey={keyOf}
        filters={
          <>
            {choose('first', t('usage.first'), first, GROUPS)}
            {choose('second', t('usage.second'), second, others)}
            <DateChip state={state} name="from" label={t('filter.from')} />
            <DateChip state={state} name="to" label={t('filter.to')} />
          </>
        }
        exporter={() =>
          saveServerFile('api/v1/llm-stats/export', asked, `usage-by-${first}-and-${second}.csv`)
        }
        empty={{ title: t('usage.none'), text: t('usage.noneText') }}
      />
      <DepartmentsSince at={answer?.departments_since} />
    </Card>
  );
}

function useBreakdownColumns(first: Group, second: Group): Column<Row>[] {
  const { t, number } = useText();
  const format = useFormat();
  return useMemo(() => {
    const shown = (group: Group, key: string, row: Row) => {
      // Of two groupings by holders both are unassigned; of one, only that.
      if (row.unassigned && OF_HOLDERS.includes(group)) {
        return <span className="text-muted">{t('usage.unassigned')}</span>;
      }
      switch (group) {
        case 'user':
          return <UserName email={key} former={row.former_employee} />;
        case 'instance':
          return row.instance ?? key;
        case 'date':
          return format.day(key);
        default:
          return key || <span className="text-muted">{t('usage.noDepartment')}</span>;
      }
    };
    return [
      { key: 'first', label: t(`usage.by.${first}`), cell: (row) => shown(first, row.key, row) },
      {
        key: 'second',
        label: t(`usage.by.${second}`),
        cell: (row) => shown(second, row.second_key ?? '', row),
      },
      { key: 'calls', label: t('usage.calls'), end: true, cell: (row) => number(row.calls) },
      { key: 'tokens', label: t('usage.tokens'), end: true, cell: (row) => number(row.tokens) },
      { key: 'cost', label: t('usage.cost_usd'), end: true, cell: (row) => format.fineMoney(row.cost_usd) },
    ];
  }, [first, second, t, number, format]);
}
