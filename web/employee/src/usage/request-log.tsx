// Single requests, newest first, by page and instance; the whole list goes into a file.
import { useMutation } from '@tanstack/react-query';
import { RelativeTime } from '@tidepool/shared/i18n/time';
import { saveFile, toCsv } from '@tidepool/shared/table/csv';
import { Status } from '@tidepool/shared/ui/badge';
import { Button } from '@tidepool/shared/ui/button';
import { Panel } from '@tidepool/shared/ui/panel';
import { SelectChip } from '@tidepool/shared/ui/select';
import { EmptyState } from '@tidepool/shared/ui/states';
import { ChevronLeft, ChevronRight, Download, ScrollText } from 'lucide-react';
import { useState } from 'react';
import { useInstances } from '../instances-query';
import { useText } from '../messages';
import { seconds, usd } from '../money';
import { log, LOG_SIZE, useLog, type LogEntry } from './queries';

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
] as const;
/** A file of more rows than this is what the administrators' export is for. */
const CSV_MOST = 10_000;
const CSV_PAGE = 200;

type StatusFilter = '' | 'success' | 'error';

interface RequestLogProps {
  instance: string;
  onInstance: (id: string) => void;
}

export function RequestLog({ instance, onInstance }: RequestLogProps) {
  const { t, number } = useText();
  const [page, setPage] = useState(1);
  const [status, setStatus] = useState<StatusFilter>('');
  const entries = useLog(instance, page);
  const instances = useInstances();
  const pages = Math.max(1, Math.ceil((entries.data?.total ?? 0) / LOG_SIZE));
  const csv = useMutation({ mutationFn: () => collect(instance) });

  async function collect(id: string) {
    const rows: LogEntry[] = [];
    for (let at = 1; rows.length < CSV_MOST; at += 1) {
      const { logs, total } = await log(id, at, CSV_PAGE);
      rows.push(...logs);
      if (logs.length === 0 || rows.length >= total) break;
    }
    const wanted = rows.filter((row) => status === '' || row.status === status);
    saveFile(
      'requests.csv',
      toCsv(
        CSV_HEAD,
        wanted.map((row) => CSV_HEAD.map((name) => row[name])),
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
            onChange={(event) => {
              setPage(1);
              onInstance(event.target.value);
            }}
          />
          <SelectChip
            label={t('log.status')}
            value={status}
            choices={[
              { value: '', label: t('log.anyStatus') },
              { value: 'success', label: t('log.success') },
              { value: 'error', label: t('log.error') },
            ]}
            onChange={(event) => setStatus(event.target.value as StatusFilter)}
          />
          <Button size="small" busy={csv.isPending} onClick={() => csv.mutate()}>
            <Download className="size-4" aria-hidden="true" />
            CSV
          </Button>
        </div>
      }
      empty={{
        when: (data) => data.total === 0,
        show: <EmptyState title={t('log.none')}>{t('log.noneHint')}</EmptyState>,
      }}
    >
      {(data) => (
        <>
          <LogTable rows={data.logs.filter((row) => status === '' || row.status === status)} />
          <div className="mt-3 flex flex-wrap items-center justify-between gap-2 text-sm text-muted">
            <span>
              {t('log.range', {
                from: number((page - 1) * LOG_SIZE + 1),
                to: number(Math.min(page * LOG_SIZE, data.total)),
                total: number(data.total),
              })}
              {status !== '' && ` ${t('log.pageFilter')}`}
            </span>
            <span className="flex gap-1">
              <Button
                size="small"
                disabled={page <= 1}
                aria-label={t('log.newer')}
                onClick={() => setPage(page - 1)}
              >
                <ChevronLeft className="size-4" aria-hidden="true" />
              </Button>
              <Button
                size="small"
                disabled={page >= pages}
                aria-label={t('log.older')}
                onClick={() => setPage(page + 1)}
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

function LogTable({ rows }: { rows: readonly LogEntry[] }) {
  const { t, number, locale } = useText();
  const instances = useInstances();
  const names = new Map(instances.data?.map((one) => [one.id, one.name]));
  if (rows.length === 0) return <p className="text-sm text-muted">{t('log.noneHere')}</p>;
  return (
    // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- a region that scrolls has to be reachable
    <div role="group" aria-label={t('log.title')} tabIndex={0} className="overflow-x-auto">
      <table className="w-full text-sm">
        <thead>
          <tr className="border-b border-line text-start text-xs text-muted">
            <th scope="col" className="py-2 text-start font-medium">
              {t('log.time')}
            </th>
            <th scope="col" className="py-2 ps-4 text-start font-medium">
              {t('log.instance')}
            </th>
            <th scope="col" className="py-2 ps-4 text-start font-medium">
              {t('log.model')}
            </th>
            <th scope="col" className={`${NUMBER} font-medium`}>
              {t('usage.prompt')}
            </th>
            <th scope="col" className={`${NUMBER} font-medium`}>
              {t('usage.completion')}
            </th>
            <th scope="col" className={`${NUMBER} font-medium`}>
              {t('usage.cost')}
            </th>
            <th scope="col" className={`${NUMBER} font-medium`}>
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
              <td className="py-2 whitespace-nowrap">
                <RelativeTime at={row.time} />
              </td>
              <td className="py-2 ps-4 whitespace-nowrap">{names.get(row.instance_id) ?? row.instance_id}</td>
              <td className="py-2 ps-4 whitespace-nowrap">{row.model}</td>
              <td className={NUMBER}>{number(row.prompt_tokens)}</td>
              <td className={NUMBER}>{number(row.completion_tokens)}</td>
              <td className={NUMBER}>{usd(row.cost_usd, locale)}</td>
              <td className={NUMBER}>{seconds(row.latency_ms, locale)}</td>
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
