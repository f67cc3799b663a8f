// The scheduled jobs: when each ran last, how it went; any of them can be run now.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { errorText } from '@tidepool/shared/api/error-text';
import { RelativeTime } from '@tidepool/shared/i18n/time';
import { Page } from '@tidepool/shared/shell/page';
import { useAddressValue } from '@tidepool/shared/table/table-state';
import { Status, type Tone } from '@tidepool/shared/ui/badge';
import { Button } from '@tidepool/shared/ui/button';
import { Card } from '@tidepool/shared/ui/panel';
import { EmptyState } from '@tidepool/shared/ui/states';
import { toast } from '@tidepool/shared/ui/toast';
import { Play } from 'lucide-react';
import { useFormat } from '../format';
import { useText, type Key } from '../messages';
import { Maybe } from '../parts/not-available';
import { call, type JobRun, type Listing } from '../pending-api';

/** The jobs of the clock with how often each runs. */
const JOBS = {
  queueWorker: '5s',
  health_check: '5m',
  auto_recovery: '10m',
  log_scan: '5m',
  server_metrics: '5m',
  token_usage_sync: '15m',
  key_validity_check: '30m',
  llm_self_heal: '5m',
  sync_llm_spend: '10m',
  audit_cleanup: '1d',
} as const;

const TONES: Record<string, Tone> = { running: 'busy', success: 'good', failed: 'bad', skipped: 'none' };
const SHOWN = 100;

export default function Jobs() {
  const { t } = useText();
  const [job, setJob] = useAddressValue('job_name');
  const runs = useQuery({
    queryKey: ['jobs', 'runs', job],
    queryFn: () =>
      call<Listing<JobRun>>(
        'GET',
        `/job-runs?limit=${SHOWN}${job ? `&job_name=${encodeURIComponent(job)}` : ''}`,
      ),
    retry: false,
  });
  return (
    <Page wide title={t('nav.jobs')} lead={t('jobs.lead')}>
      <Maybe query={runs}>
        {({ list }) => (
          <div className="grid items-start gap-4 xl:grid-cols-2">
            <Card title={t('jobs.schedule')}>
              <ul className="divide-y divide-line">
                {Object.entries(JOBS).map(([name, every]) => (
                  <JobLine
                    key={name}
                    name={name}
                    every={t(`jobs.every.${every}`)}
                    last={list.find((run) => run.job_name === name)}
                    chosen={job === name}
                    onChoose={() => setJob(job === name ? null : name)}
                  />
                ))}
              </ul>
            </Card>
            <Card title={job ? t('jobs.runsOf', { name: job }) : t('jobs.runs')}>
              {list.length === 0 ? (
                <EmptyState title={t('jobs.none')}>{t('jobs.noneText')}</EmptyState>
              ) : (
                <ul className="divide-y divide-line">
                  {list.map((run) => (
                    <RunLine key={run.id} run={run} />
                  ))}
                </ul>
              )}
            </Card>
          </div>
        )}
      </Maybe>
    </Page>
  );
}

interface JobLineProps {
  name: string;
  every: string;
  last: JobRun | undefined;
  chosen: boolean;
  onChoose: () => void;
}

function JobLine({ name, every, last, chosen, onChoose }: JobLineProps) {
  const i18n = useText();
  const { t } = i18n;
  const client = useQueryClient();
  const run = useMutation({
    mutationFn: () => call<unknown>('POST', `/job-runs/${encodeURIComponent(name)}/run`, {}),
    onSuccess: () => {
      toast('success', t('jobs.woken', { name }));
      void client.invalidateQueries({ queryKey: ['jobs'] });
    },
    onError: (error) => toast('error', errorText(error, i18n)),
  });
  return (
    <li className="flex flex-wrap items-center gap-x-4 gap-y-1 py-2.5 text-sm">
      <button
        type="button"
        aria-pressed={chosen}
        onClick={onChoose}
        className="min-w-0 flex-1 basis-44 rounded text-start hover:text-accent aria-pressed:text-accent"
      >
        <span className="font-medium">{t(`job.${name}` as Key)}</span>
        <span className="block text-muted">{every}</span>
      </button>
      {last ? (
        <Status tone={TONES[last.status] ?? 'none'}>
          <RelativeTime at={last.created_at} />
        </Status>
      ) : (
        <span className="text-muted">{t('overview.neverRan')}</span>
      )}
      <Button
        size="small"
        busy={run.isPending}
        aria-label={t('jobs.runNowOf', { name })}
        onClick={() => run.mutate()}
      >
        <Play className="size-4" aria-hidden="true" />
        {t('jobs.runNow')}
      </Button>
    </li>
  );
}

function RunLine({ run }: { run: JobRun }) {
  const { t } = useText();
  const format = useFormat();
  return (
    <li className="flex flex-wrap items-center gap-x-4 gap-y-0.5 py-2 text-sm">
      <Status tone={TONES[run.status] ?? 'none'}>{run.job_name}</Status>
      <span className="ms-auto text-muted tabular-nums">{format.duration(run.duration_ms)}</span>
      <span className="w-28 text-end text-muted">
        <RelativeTime at={run.created_at} />
      </span>
      <span className="sr-only">{t(`jobStatus.${run.status}`)}</span>
      {run.message && <span className="w-full text-muted">{run.message}</span>}
    </li>
  );
}
