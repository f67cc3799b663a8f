// The scheduled jobs: when each ran last, how it went; any of them can be run now, paused and switched on again.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { errorText } from '@tidepool/shared/api/error-text';
import { DIMENSIONS, JOBS, type Dimension, type Job as JobName } from '@tidepool/shared/api/registry.gen';
import { RelativeTime } from '@tidepool/shared/i18n/time';
import { Page } from '@tidepool/shared/shell/page';
import { useAddressValue } from '@tidepool/shared/table/table-state';
import { Badge, Status, type Tone } from '@tidepool/shared/ui/badge';
import { Button } from '@tidepool/shared/ui/button';
import { Panel } from '@tidepool/shared/ui/panel';
import { EmptyState } from '@tidepool/shared/ui/states';
import { toast } from '@tidepool/shared/ui/toast';
import { Pause, Play, Power } from 'lucide-react';
import { api } from '../api';
import { useFormat } from '../format';
import { useMay } from '../me';
import { useText } from '../messages';
import type { Job, JobRun } from '../records';
import { scheduleText } from '../schedule-text';

const TONES: Record<JobRun['status'], Tone> = {
  running: 'busy',
  success: 'good',
  failed: 'bad',
  skipped: 'none',
};
const SHOWN = 200;

interface Streak {
  /** The newest of them. */
  run: JobRun;
  times: number;
}

/** The task worker runs every few seconds: runs of one job in a row that went alike are one line. */
function streaks(runs: readonly JobRun[]): Streak[] {
  const found: Streak[] = [];
  for (const run of runs) {
    const last = found.at(-1);
    if (last?.run.job_name === run.job_name && last.run.status === run.status) last.times += 1;
    else found.push({ run, times: 1 });
  }
  return found;
}

/** Our words for a job we know, else the server's. */
function useJobName() {
  const { t } = useText();
  const jobs: readonly string[] = JOBS;
  const dimensions: readonly string[] = DIMENSIONS;
  return ({ name, label }: Pick<Job, 'name' | 'label'>) => {
    if (jobs.includes(name)) return t(`job.${name as JobName}`);
    return dimensions.includes(name) ? t(`guardian.${name as Dimension}`) : label;
  };
}

export default function Jobs() {
  const { t } = useText();
  const nameOf = useJobName();
  const [job, setJob] = useAddressValue('job_name');
  const jobs = useQuery({ queryKey: ['jobs', 'all'], queryFn: () => unwrap(api.GET('/jobs')) });
  const runs = useQuery({
    queryKey: ['jobs', 'runs', job],
    queryFn: () =>
      unwrap(api.GET('/job-runs', { params: { query: { limit: SHOWN, ...(job && { job_name: job }) } } })),
  });
  const chosen = jobs.data?.list.find((one) => one.name === job);
  return (
    <Page wide title={t('nav.jobs')} lead={t('jobs.lead')}>
      <div className="grid items-start gap-4 xl:grid-cols-2">
        <Panel title={t('jobs.schedule')} query={jobs}>
          {({ list }) => (
            <ul className="divide-y divide-line">
              {list.map((one) => (
                <JobLine
                  key={one.name}
                  job={one}
                  name={nameOf(one)}
                  chosen={job === one.name}
                  onChoose={() => setJob(job === one.name ? null : one.name)}
                />
              ))}
            </ul>
          )}
        </Panel>
        <Panel
          title={job ? t('jobs.runsOf', { name: chosen ? nameOf(chosen) : job }) : t('jobs.runs')}
          query={runs}
          empty={{
            when: ({ list }) => list.length === 0,
            show: <EmptyState title={t('jobs.none')}>{t('jobs.noneText')}</EmptyState>,
          }}
        >
          {({ list }) => (
            <ul className="divide-y divide-line">
              {(job ? list.map((run) => ({ run, times: 1 })) : streaks(list)).map(({ run, times }) => (
                <RunLine
                  key={run.id}
                  run={run}
                  name={nameOf({ name: run.job_name, label: run.job_name })}
                  times={times}
                />
              ))}
            </ul>
          )}
        </Panel>
      </div>
    </Page>
  );
}

interface JobLineProps {
  job: Job;
  name: string;
  chosen: boolean;
  onChoose: () => void;
}

function JobLine({ job, name, chosen, onChoose }: JobLineProps) {
  const i18n = useText();
  const { t } = i18n;
  const client = useQueryClient();
  const mayRun = useMay('jobs.run');
  const mayPause = useMay('jobs.pause');
  const params = { path: { job: job.name } };
  const told = (text: string) => () => {
    toast('success', text);
    void client.invalidateQueries({ queryKey: ['jobs'] });
  };
  const onError = (error: Error) => toast('error', errorText(error, i18n));
  const run = useMutation({
    mutationFn: () => unwrap(api.POST('/job-runs/{job}/run', { params })),
    onSuccess: told(t('jobs.woken', { name })),
    onError,
  });
  const pause = useMutation({
    mutationFn: () => unwrap(api.PATCH('/jobs/{job}', { params, body: { paused: !job.paused } })),
    onSuccess: told(t(job.paused ? 'jobs.isOn' : 'jobs.isPaused', { name })),
    onError,
  });
  const PauseIcon = job.paused ? Power : Pause;
  return (
    <li className="flex flex-wrap items-center gap-x-3 gap-y-1.5 py-2.5 text-sm">
      <button
        type="button"
        aria-pressed={chosen}
        onClick={onChoose}
        className="min-w-0 flex-1 basis-32 rounded text-start hover:text-accent aria-pressed:text-accent"
      >
        <span className="font-medium">{name}</span>
        <span className="block text-muted">{scheduleText(job.schedule, t)}</span>
      </button>
      {job.paused && <Badge tone="warn">{t('jobs.paused')}</Badge>}
      {job.last_run ? (
        <Status tone={TONES[job.last_run.status]}>
          <span className="sr-only">{t(`jobStatus.${job.last_run.status}`)} </span>
          <RelativeTime at={job.last_run.created_at} />
        </Status>
      ) : (
        <span className="text-muted">{t('overview.neverRan')}</span>
      )}
      <span className="flex gap-1.5">
        {mayPause && (
          <Button
            size="small"
            busy={pause.isPending}
            aria-label={t(job.paused ? 'jobs.switchOnOf' : 'jobs.pauseOf', { name })}
            title={t(job.paused ? 'jobs.switchOn' : 'jobs.pause')}
            onClick={() => pause.mutate()}
          >
            {!pause.isPending && <PauseIcon className="size-4" aria-hidden="true" />}
          </Button>
        )}
        {mayRun && (
          <Button
            size="small"
            busy={run.isPending}
            aria-label={t('jobs.runNowOf', { name })}
            onClick={() => run.mutate()}
          >
            {!run.isPending && <Play className="size-4" aria-hidden="true" />}
            {t('jobs.runNow')}
          </Button>
        )}
      </span>
    </li>
  );
}

function RunLine({ run, name, times }: Streak & { name: string }) {
  const { t } = useText();
  const format = useFormat();
  return (
    <li className="flex flex-wrap items-baseline gap-x-4 gap-y-0.5 py-2 text-sm">
      <span className="flex flex-1 basis-40 flex-wrap gap-x-3">
        <Status tone={TONES[run.status]}>{name}</Status>
        {times > 1 && <Badge>{t('jobs.times', { count: times })}</Badge>}
      </span>
      <span className="text-end whitespace-nowrap text-muted tabular-nums">
        {format.duration(run.duration_ms)} · <RelativeTime at={run.created_at} />
      </span>
      <span className="sr-only">{t(`jobStatus.${run.status}`)}</span>
      {run.message && <span className="w-full text-muted">{run.message}</span>}
    </li>
  );
}
