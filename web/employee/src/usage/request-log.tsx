// Single requests, newest first, by page, instance and result; the whole list goes into a file.
import { useMutation } from '@tanstack/react-query';
import { RelativeTime } from '@tidepool/shared/i18n/time';
import { saveFile, toCsv } from '@tidepool/shared/table/csv';
import { Status } from '@tidepool/shared/ui/badge';
import { Button } from '@tidepool/shared/ui/button';
import { EstimatedMark } from '@tidepool/shared/ui/estimated';
import { Panel } from '@tidepool/shared/ui/panel';
import { SelectChip } from '@tidepool/shared/ui/select';
import { EmptyState } from '@tidepool/shared/ui/states';
import { ChevronLeft, ChevronRight, Download, ScrollText } from 'lucide-react';
import { Fragment } from 'react';
import { useInstances } from '../instances-query';
import { useText } from '../messages';
import { seconds, usd } from '../money';
import { log, LOG_SIZE, useLog, type LogEntry, type LogFilter, type LogStatus } from './queries';

const CSV_HEAD = [
  'time',
  'instance_id',
  'model',
  'prompt_tokens',
  'completion_tokens',
  'cost_usd',
  'latency_ms',
  'status',
  'is_stream',
  'estimated',
] as const;
/** A file of more rows than this is what the administrators' export is for. */
const CSV_MOST = 10_000;
const CSV_PAGE = 200;

interface RequestLogProps {
  filter: LogFilter;
  page: number;
  onFilter: (filter: LogFilter) => void;
  onPage: (page: number) => void;
}

export function RequestLog({ filter, page, onFilter, onPage }: RequestLogProps) {
  const { t, number } = useText();
  const { instance, status } = filter;
  const entries = useLog(filter, page);
  const instances = useInstances();
  const pages = Math.max(1, Math.ceil((entries.data?.total ?? 0) / LOG_SIZE));
  const csv = useMutation({ mutationFn: () => collect(filter) });

  async function collect(wanted: LogFilter) {
    const rows: LogEntry[] = [];
    for (let at = 1; rows.length < CSV_MOST; at += 1) {
      const { logs, total } = await log(wanted, at, CSV_PAGE);
      rows.push(...logs);
      if (logs.length === 0 || rows.length >= total) break;
    }
    saveFile(
      'requests.csv',
      toCsv(
        CSV_HEAD,
        rows.map((row) => CSV_HEAD.map((name) => row[name])),
      ),
    );
  }

  return (
    <Panel
      title={t('log.title')}
      icon={<ScrollText aria-hidden="true" />}
      query={entries}
      skeletonLines={8}
      action={
        <div className="flex flex-wrap items-center gap-2">
          <SelectChip
            label={t('log.instance')}
            value={instance}
            choices={[
              { value: '', label: t('log.allInstances') },
              ...(instances.data ?? []).map((one) => ({ value: one.id, label: one.name })),
            ]}
            onChange={(event) => onFilter({ ...filter, instance: event.target.value })}
          />
          <SelectChip
            label={t('log.status')}
            value={status}
            choices={[
              { value: '', label: t('log.anyStatus') },
              { value: 'success', label: t('log.success') },
              { value: 'error', label: t('log.error') },
            ]}
            onChange={(event) => onFilter({ ...filter, status: event.target.value as LogStatus })}
          />
          <Button size="small" busy={csv.isPending} onClick={() => csv.mutate()}>
            <Download className="size-4" aria-hidden="true" />
            CSV
          </Button>
        </div>
      }
      empty={{
        // Also behind the last page, to which an address may lead.
        when: (data) => data.logs.length === 0,
        show:
          status === '' && page === 1 ? (
            <EmptyState title={t('log.none')}>{t('log.noneHint')}</EmptyState>
          ) : (
            <EmptyState title={t('log.noneSuch')}>
              <Button size="small" onClick={() => onFilter({ ...filter, status: '' })}>
                {t('log.all')}
              </Button>
            </EmptyState>
          ),
      }}
    >
      {(data) => (
        <>
          <LogTable rows={data.logs} />
          <div className="mt-3 flex flex-wrap items-center justify-between gap-2 text-sm text-muted">
            <span>
              {t('log.range', {
                from: number((page - 1) * LOG_SIZE + 1),
                to: number(Math.min(page * LOG_SIZE, data.total)),
                total: number(data.total),
              })}
            </span>
            <span className="flex gap-1">
              <Button
                size="small"
                disabled={page <= 1}
                aria-label={t('log.newer')}
                onClick={() => onPage(page - 1)}
              >
                <ChevronLeft className="size-4" aria-hidden="true" />
              </Button>
              <Button
                size="small"
                disabled={page >= pages}
                aria-label={t('log.older')}
                onClick={() => onPage(page + 1)}
              >
                <ChevronRight className="size-4" aria-hidden="true" />
              </Button>
            </span>
          </div>
        </>
      )}
    </Panel>
  );
}

const NUMBER = 'py-2 ps-4 text-end tabular-nums whitespace-nowrap';
/** Columns for which a phone has no room: it has them in small below the time. */
const WIDE = 'hidden sm:table-cell';

function LogTable({ rows }: { rows: readonly LogEntry[] }) {
  const { t, number, locale } = useText();
  const instances = useInstances();
  const names = new Map(instances.data?.map((one) => [one.id, one.name]));
  return (
    // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- a region that scrolls has to be reachable
    <div role="group" aria-label={t('log.title')} tabIndex={0} className="overflow-x-auto">
      <table className="w-full text-sm">
        <thead>
          <tr className="border-b border-line text-start text-xs text-muted">
            <th scope="col" className="py-2 text-start font-medium">
              {t('log.time')}
            </th>
            <th scope="col" className={`${WIDE} py-2 ps-4 text-start font-medium`}>
              {t('log.instance')}
            </th>
            <th scope="col" className={`${WIDE} py-2 ps-4 text-start font-medium`}>
              {t('log.model')}
            </th>
            <th scope="col" className={`${WIDE} ${NUMBER} font-medium`}>
              {t('usage.prompt')}
            </th>
            <th scope="col" className={`${WIDE} ${NUMBER} font-medium`}>
              {t('usage.completion')}
            </th>
            <th scope="col" className={`${NUMBER} font-medium`}>
              {t('usage.cost')}
            </th>
            <th scope="col" className={`${WIDE} ${NUMBER} font-medium`}>
              {t('log.latency')}
            </th>
            <th scope="col" className="py-2 ps-4 text-start font-medium">
              {t('log.status')}
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={`${row.time}-${index}`} className="border-b border-line last:border-0 hover:bg-sunken">
              <td className="py-2 sm:whitespace-nowrap">
                <RelativeTime at={row.time} />
                <span className="block text-xs text-muted sm:hidden">
                  <Facts
                    of={[
                      names.get(row.instance_id) ?? row.instance_id,
                      row.model,
                      t('usage.tokensOf', { count: number(row.prompt_tokens + row.completion_tokens) }),
                      seconds(row.latency_ms, locale),
                    ]}
                  />
                </span>
              </td>
              <td className={`${WIDE} py-2 ps-4 whitespace-nowrap`}>
                {names.get(row.instance_id) ?? row.instance_id}
              </td>
              <td className={`${WIDE} py-2 ps-4 whitespace-nowrap`}>{row.model}</td>
              <td className={`${WIDE} ${NUMBER}`}>{number(row.prompt_tokens)}</td>
              <td className={`${WIDE} ${NUMBER}`}>{number(row.completion_tokens)}</td>
              <td className={NUMBER}>
                <EstimatedMark when={row.estimated} />
                {usd(row.cost_usd, locale)}
              </td>
              <td className={`${WIDE} ${NUMBER}`}>{seconds(row.latency_ms, locale)}</td>
              <td className="py-2 ps-4">
                <Status tone={row.status === 'success' ? 'good' : 'bad'}>{t(`log.${row.status}`)}</Status>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** One after another, none broken within. */
function Facts({ of: facts }: { of: readonly string[] }) {
  return facts.map((fact, index) => (
    <Fragment key={index}>
      {index > 0 && ' '}
      <span className="whitespace-nowrap">{index < facts.length - 1 ? `${fact} ·` : fact}</span>
    </Fragment>
  ));
}
