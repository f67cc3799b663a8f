// Every single request to a model, newest first; and those under way right now.
import { useQuery } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { exact, RelativeTime } from '@tidepool/shared/i18n/time';
import { Page } from '@tidepool/shared/shell/page';
import type { Column } from '@tidepool/shared/table/columns';
import { DataTable } from '@tidepool/shared/table/data-table';
import { useTableState } from '@tidepool/shared/table/table-state';
import { Status } from '@tidepool/shared/ui/badge';
import { EstimatedMark } from '@tidepool/shared/ui/estimated';
import { Notice } from '@tidepool/shared/ui/notice';
import { useMemo } from 'react';
import { api } from '../api';
import { useFormat } from '../format';
import { useList } from '../lists';
import { useText } from '../messages';
import { DateChip, FilterChip } from '../parts/filter-chip';
import { useModels } from '../parts/models';
import { oneOf } from '../records';
import { UserName } from '../usage/holder';

const STATUSES = ['success', 'error'] as const;

interface Request {
  id: number;
  created_at: string;
  instance_name: string;
  user_email: string;
  former_employee: boolean;
  model: string;
  provider: string;
  tokens_in: number;
  tokens_out: number;
  cost: number;
  status: 'success' | 'error';
  estimated: boolean;
  protocol: string;
  asked_model: string;
  cache_read_tokens?: number | null;
  cache_write_tokens?: number | null;
  reasoning_tokens?: number | null;
  retries?: number | null;
  first_byte_ms?: number | null;
  cost_exact: string;
}

const keyOf = (one: Request) => String(one.id);
/** Nothing, for what nobody said. */
const known = (value: number | null | undefined, write: (value: number) => string) =>
  typeof value === 'number' ? write(value) : null;
const pageOf = (one: Request) => `/requests/${one.id}`;

export default function Requests() {
  const { t } = useText();
  const state = useTableState(['instance', 'model', 'status', 'start', 'end', 'search_before']);
  const models = useModels();
  const { query, fetchPage } = useList('requests', state, ({ q, page, page_size }, filters) =>
    unwrap(
      api.GET('/llm-request-logs', {
        params: {
          query: {
            q,
            page,
            page_size,
            instance: filters.instance,
            model: filters.model,
            status: oneOf(filters.status, STATUSES),
            start: filters.start,
            end: filters.end,
            search_before: filters.search_before,
          },
        },
      }),
    ),
  );
  const freshness = query.data as { stale?: boolean; as_of?: string } | undefined;
  const columns = useRequestColumns();
  return (
    <Page wide title={t('nav.requests')}>
      <UnderWay />
      {freshness?.stale && freshness.as_of && (
        <div className="mb-3">
          <Notice tone="warning">
            {t('overview.stale')} <RelativeTime at={freshness.as_of} />
          </Notice>
        </div>
      )}
      <DataTable
        id="requests"
        caption={t('nav.requests')}
        columns={columns}
        query={query}
        state={state}
        rowKey={keyOf}
        href={pageOf}
        search={t('requests.search')}
        filters={
          <>
            <FilterChip
              state={state}
              name="status"
              label={t('requests.status')}
              choices={STATUSES.map((value) => ({ value, label: t(`requests.${value}`) }))}
            />
            <FilterChip
              state={state}
              name="model"
              label={t('instances.model')}
              choices={(models.data?.list ?? []).map((one) => ({ value: one.id, label: one.id }))}
            />
            {state.filters.instance && (
              <FilterChip state={state} name="instance" label={t('requests.instance')} choices={[]} />
            )}
            <DateChip state={state} name="start" label={t('filter.from')} />
            <DateChip state={state} name="end" label={t('filter.to')} />
          </>
        }
        fetchPage={fetchPage}
        empty={{ title: t('requests.none'), text: t('requests.noneText') }}
      />
    </Page>
  );
}

function useRequestColumns(): Column<Request>[] {
  const { t, number, locale } = useText();
  const format = useFormat();
  return useMemo(
    () => [
      {
        key: 'time',
        label: t('requests.time'),
        csv: (one) => one.created_at,
        cell: (one) => (
          <span
            className="font-normal whitespace-nowrap"
            title={exact(new Date(one.created_at).getTime(), locale)}
          >
            {new Date(one.created_at).toLocaleString(locale, { dateStyle: 'short', timeStyle: 'medium' })}
          </span>
        ),
      },
      {
        key: 'status',
        label: t('requests.status'),
        csv: (one) => one.status,
        cell: (one) => (
          <Status tone={one.status === 'success' ? 'good' : 'bad'}>{t(`requests.${one.status}`)}</Status>
        ),
      },
      {
        key: 'instance',
        label: t('requests.instance'),
        csv: (one) => one.instance_name,
        cell: (one) => one.instance_name,
      },
      {
        key: 'user',
        label: t('requests.user'),
        csv: (one) => one.user_email,
        cell: (one) => one.user_email && <UserName email={one.user_email} former={one.former_employee} />,
      },
      { key: 'model', label: t('instances.model'), csv: (one) => one.model, cell: (one) => one.model },
      {
        key: 'provider',
        extra: true,
        label: t('requests.provider'),
        csv: (one) => one.provider,
        cell: (one) => one.provider,
      },
      {
        key: 'in',
        label: t('requests.in'),
        end: true,
        csv: (one) => one.tokens_in,
        cell: (one) => number(one.tokens_in),
      },
      {
        key: 'out',
        label: t('requests.out'),
        end: true,
        csv: (one) => one.tokens_out,
        cell: (one) => number(one.tokens_out),
      },
      {
        key: 'cost',
        label: t('usage.cost_usd'),
        end: true,
        csv: (one) => one.cost,
        cell: (one) => (
          <span className="whitespace-nowrap">
            <EstimatedMark when={one.estimated} />
            {format.fineMoney(one.cost)}
          </span>
        ),
      },
      {
        key: 'cached',
        extra: true,
        label: t('request.cacheRead'),
        end: true,
        csv: (one) => one.cache_read_tokens,
        cell: (one) => known(one.cache_read_tokens, number),
      },
      {
        key: 'written',
        extra: true,
        label: t('request.cacheWrite'),
        end: true,
        csv: (one) => one.cache_write_tokens,
        cell: (one) => known(one.cache_write_tokens, number),
      },
      {
        key: 'reasoning',
        extra: true,
        label: t('request.reasoning'),
        end: true,
        csv: (one) => one.reasoning_tokens,
        cell: (one) => known(one.reasoning_tokens, number),
      },
      {
        key: 'protocol',
        extra: true,
        label: t('request.protocol'),
        csv: (one) => one.protocol,
        cell: (one) => one.protocol,
      },
      {
        key: 'firstByte',
        extra: true,
        label: t('request.firstByte'),
        end: true,
        csv: (one) => one.first_byte_ms,
        cell: (one) => known(one.first_byte_ms, format.duration),
      },
      {
        key: 'retries',
        extra: true,
        label: t('request.retries'),
        end: true,
        csv: (one) => one.retries,
        cell: (one) => known(one.retries, number),
      },
      {
        key: 'estimated',
        extra: true,
        label: t('requests.estimated'),
        csv: (one) => one.estimated,
        cell: (one) => one.estimated && t('requests.estimated'),
      },
    ],
    [t, number, locale, format],
  );
}

const WATCH_MS = 2_000;

/** Only the embedded gateway can say what is under way; elsewhere this shows nothing. */
function UnderWay() {
  const { t } = useText();
  const live = useQuery({
    queryKey: ['usage', 'live'],
    queryFn: () => unwrap(api.GET('/llm-live')),
    refetchInterval: ({ state }) => (state.status === 'error' ? false : WATCH_MS),
    retry: false,
  });
  if (!live.data || live.data.list.length === 0) return null;
  return (
    <section
      aria-label={t('requests.underWay')}
      className="mb-4 rounded-xl border border-line bg-accent-soft px-4 py-3 text-sm"
    >
      <h2 className="mb-1 font-medium text-accent-strong">
        {t('requests.underWayCount', { count: live.data.total })}
      </h2>
      <ul>
        {live.data.list.slice(0, 8).map((one) => (
          <li key={one.id} className="flex flex-wrap gap-x-3">
            <Status tone="busy">{one.gateway_token_name}</Status>
            <span className="text-muted">
              {one.model} · {one.protocol && `${one.protocol} · `}
              <RelativeTime at={one.started_at} />
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}
