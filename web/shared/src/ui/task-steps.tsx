// What a task has done so far: its written steps, attempts told apart, and below them that it goes on.
import { Check, CircleDashed, CircleX, LoaderCircle } from 'lucide-react';
import { useI18n, type SharedKey } from '../i18n/i18n';
import { exact } from '../i18n/time';

export type TaskState = 'pending' | 'processing' | 'done' | 'failed' | 'dead';

export interface TaskStep {
  attempt: number;
  line: string;
  created_at: string;
}

/** What follows the written steps. */
const NEXT: Partial<Record<TaskState, SharedKey>> = { pending: 'task.waiting', processing: 'task.working' };

interface StepsProps {
  status: TaskState;
  steps: readonly TaskStep[];
}

export function TaskSteps({ status, steps }: StepsProps) {
  const { t, locale } = useI18n();
  const attempts = new Set(steps.map((step) => step.attempt)).size;
  const next = NEXT[status];
  // A step is written when it is done; only where the task failed, it did so right after its last one.
  const lastIs = status === 'failed' || status === 'dead' ? status : 'done';
  return (
    <ol className="space-y-0" aria-live="polite">
      {steps.map((step, index) => {
        const newAttempt = attempts > 1 && step.attempt !== steps[index - 1]?.attempt;
        const last = index === steps.length - 1;
        return (
          // Steps are only ever added at the end, so their place is their identity.
          <li key={index}>
            {newAttempt && (
              <p className="mt-3 mb-1 text-xs font-medium text-muted first:mt-0">
                {t('task.attempt', { n: step.attempt })}
              </p>
            )}
            <div className="flex gap-3">
              <div className="flex flex-col items-center">
                <StepIcon status={last ? lastIs : 'done'} />
                {(!last || next) && <span aria-hidden="true" className="w-px flex-1 bg-line" />}
              </div>
              <p className="min-w-0 flex-1 pb-3 text-sm">
                {step.line}{' '}
                <time
                  dateTime={step.created_at}
                  title={exact(new Date(step.created_at).getTime(), locale)}
                  className="text-xs whitespace-nowrap text-muted tabular-nums"
                >
                  {new Date(step.created_at).toLocaleTimeString(locale)}
                </time>
              </p>
            </div>
          </li>
        );
      })}
      {(steps.length === 0 || next) && (
        <li className="flex gap-3 text-sm text-muted">
          <StepIcon status={status} />
          {t(next ?? 'task.noSteps')}
        </li>
      )}
    </ol>
  );
}

function StepIcon({ status }: { status: TaskState }) {
  const look = 'mt-0.5 size-4.5 shrink-0';
  if (status === 'done') return <Check className={`${look} text-success`} aria-hidden="true" />;
  if (status === 'processing')
    return <LoaderCircle className={`${look} animate-spin text-accent`} aria-hidden="true" />;
  if (status === 'pending') return <CircleDashed className={`${look} text-muted`} aria-hidden="true" />;
  return <CircleX className={`${look} text-danger`} aria-hidden="true" />;
}
