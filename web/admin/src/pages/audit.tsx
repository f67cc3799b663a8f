// Who did what, when and from where; the filters stand in the address, the export is the server's own file.
import { unwrap } from '@tidepool/shared/api/envelope';
import { RelativeTime } from '@tidepool/shared/i18n/time';
import { Page } from '@tidepool/shared/shell/page';
import type { Column } from '@tidepool/shared/table/columns';
import { DataTable } from '@tidepool/shared/table/data-table';
import { useTableState, type TableState } from '@tidepool/shared/table/table-state';
import { Badge } from '@tidepool/shared/ui/badge';
import { SidePanel } from '@tidepool/shared/ui/dialog';
import { Facts, NotSet } from '@tidepool/shared/ui/panel';
import { useMemo, useState } from 'react';
import { api } from '../api';
import { useList } from '../lists';
import { useText } from '../messages';
import { LEVEL_TONES } from '../parts/audit-list';
import { DateChip, FilterChip } from '../parts/filter-chip';
import { saveServerFile } from '../parts/server-file';
import { LEVELS, oneOf, type AuditEntry } from '../records';

const ACTIONS = [
  'auth.login',
  'instance.create',
  'instance.update',
  'instance.delete',
  'instance.health',
  'key.create',
  'key.sync',
  'key.delete',
  'user.create',
  'user.update',
  'server.action',
  'config.change',
  'provider.change',
  'provider.test',
  'task.failed',
  'shrimp.claim',
  'auth.mfa',
  'secret.reveal',
];
const FILTERS = ['action', 'level', 'operator', 'target', 'date', 'search_before'];
const keyOf = (one: AuditEntry) => String(one.id);

async function exportAudit({ q, filters }: TableState) {
  const { action, operator, target, date, level } = filters;
  const query = {
    format: 'csv',
    action,
    operator,
    target,
    q,
    level: oneOf(level, LEVELS),
    start_date: date,
    end_date: date,
  };
  await saveServerFile('api/v1/audit-logs/export', query, date ? `audit-${date}.csv` : 'audit.csv');
}

export default function Audit() {
  const { t } = useText();
  const state = useTableState(FILTERS);
  const [opened, setOpened] = useState<AuditEntry | null>(null);
  const { query } = useList('audit', state, (paging, filters) =>
    unwrap(
      api.GET('/audit-logs', {
        params: {
          query: {
            ...paging,
            action: filters.action,
            level: oneOf(filters.level, LEVELS),
            operator: filters.operator,
            target: filters.target,
            date: filters.date,
            search_before: filters.search_before,
          },
        },
      }),
    ),
  );
  const columns = useMemo<Column<AuditEntry>[]>(
    () => [
      {
        key: 'action',
        label: t('audit.action'),
        sort: 'action',
        csv: (one) => one.action,
        cell: (one) => <code className="font-mono text-xs">{one.action}</code>,
      },
      {
        key: 'time',
        label: t('requests.time'),
        sort: 'created_at',
        csv: (one) => one.created_at,
        cell: (one) => <RelativeTime at={one.created_at} />,
      },
      {
        key: 'level',
        label: t('audit.level'),
        sort: 'level',
        csv: (one) => one.level,
        cell: (one) => <Badge tone={LEVEL_TONES[one.level]}>{one.level}</Badge>,
      },
      {
        key: 'operator',
        label: t('audit.operator'),
        sort: 'operator',
        csv: (one) => one.operator,
        cell: (one) => <Cut text={one.operator} />,
      },
      {
        key: 'target',
        label: t('audit.target'),
        sort: 'target',
        csv: (one) => one.target,
        cell: (one) => one.target && <Cut text={one.target} />,
      },
      {
        key: 'detail',
        label: t('audit.detail'),
        wrap: true,
        csv: (one) => one.detail,
        cell: (one) => <span className="line-clamp-2 text-muted">{one.detail}</span>,
      },
      { key: 'ip', label: t('audit.ip'), extra: true, csv: (one) => one.ip, cell: (one) => one.ip },
    ],
    [t],
  );
  const narrow = (filter: Record<string, string>) => {
    setOpened(null);
    state.set(filter);
  };
  return (
    <Page wide title={t('nav.audit')}>
      <DataTable
        id="audit"
        caption={t('nav.audit')}
        columns={columns}
        query={query}
        state={state}
        rowKey={keyOf}
        onOpen={setOpened}
        search={t('audit.search')}
        filters={
          <>
            <FilterChip
              state={state}
              name="action"
              label={t('audit.action')}
              choices={ACTIONS.map((value) => ({ value, label: value }))}
            />
            <FilterChip
              state={state}
              name="level"
              label={t('audit.level')}
              choices={LEVELS.map((value) => ({ value, label: value }))}
            />
            {state.filters.operator && (
              <FilterChip state={state} name="operator" label={t('audit.operator')} choices={[]} />
            )}
            {state.filters.target && (
              <FilterChip state={state} name="target" label={t('audit.target')} choices={[]} />
            )}
            <DateChip state={state} name="date" label={t('filter.day')} />
          </>
        }
        exporter={() => exportAudit(state)}
        empty={{ title: t('audit.none'), text: t('audit.noneText') }}
      />
      {opened && (
        <SidePanel
          open
          onClose={() => setOpened(null)}
          title={opened.action}
          lead={<RelativeTime at={opened.created_at} />}
        >
          <Facts
            rows={[
              {
                name: t('audit.level'),
                value: <Badge tone={LEVEL_TONES[opened.level]}>{opened.level}</Badge>,
              },
              {
                name: t('audit.operator'),
                value: (
                  <Narrow text={opened.operator} onClick={() => narrow({ operator: opened.operator })} />
                ),
              },
              {
                name: t('audit.target'),
                value: opened.target ? (
                  <Narrow text={opened.target} onClick={() => narrow({ target: opened.target })} />
                ) : (
                  <NotSet />
                ),
              },
              {
                name: t('audit.detail'),
                value: <span className="whitespace-pre-wrap">{opened.detail || '–'}</span>,
              },
              { name: t('audit.ip'), value: opened.ip || '–' },
              { name: t('audit.agent'), value: opened.user_agent || '–' },
            ]}
          />
        </SidePanel>
      )}
    </Page>
  );
}

/** In full it would push what happened out of sight. */
function Cut({ text }: { text: string }) {
  return (
    <span className="block max-w-36 truncate" title={text}>
      {text}
    </span>
  );
}

/** A value that narrows the list to its like. */
function Narrow({ text, onClick }: { text: string; onClick: () => void }) {
  return (
    <button type="button" className="rounded text-start text-accent hover:underline" onClick={onClick}>
      {text}
    </button>
  );
}
