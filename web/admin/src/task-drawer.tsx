// One task, opened over whatever page one is on: its steps, error, attempts, next attempt, who started it; retry and cancel.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { errorText } from '@tidepool/shared/api/error-text';
import { RelativeTime } from '@tidepool/shared/i18n/time';
import { useAddressValue } from '@tidepool/shared/table/table-state';
import { Button } from '@tidepool/shared/ui/button';
import { SidePanel } from '@tidepool/shared/ui/dialog';
import { Notice } from '@tidepool/shared/ui/notice';
import { outcomeOf } from '@tidepool/shared/ui/outcome';
import { Facts } from '@tidepool/shared/ui/panel';
import { ErrorState, Skeleton } from '@tidepool/shared/ui/states';
import { TaskSteps } from '@tidepool/shared/ui/task-steps';
import { toast } from '@tidepool/shared/ui/toast';
import { Ban, RotateCw } from 'lucide-react';
import { useCallback } from 'react';
import { Link } from 'wouter';
import { api } from './api';
import { useText } from './messages';
import { useMayTask } from './parts/task-permission';
import { TaskState, useTaskName } from './parts/task-status';
import type { Task } from './records';
import { sourceText } from './source-text';

const PARAMETER = 'task';
const WATCH_MS = 1_500;
const OPEN_STATES: readonly string[] = ['pending', 'processing', 'failed'];

/** Opens a task's drawer. */
export function useOpenTask() {
  const [, setTask] = useAddressValue(PARAMETER);
  return useCallback((id: string) => setTask(id), [setTask]);
}

/** After something became a task: says so, and offers to watch it. */
export function useTaskToast() {
  const { t } = useText();
  const open = useOpenTask();
  return (id: string | null | undefined, text: string) =>
    toast('success', text, id ? { label: t('tasks.watch'), run: () => open(id) } : undefined);
}

export function TaskDrawer() {
  const [id, setId] = useAddressValue(PARAMETER);
  return id === null ? null : <OpenTask key={id} id={id} onClose={() => setId(null)} />;
}

function OpenTask({ id, onClose }: { id: string; onClose: () => void }) {
  const { t } = useText();
  const taskName = useTaskName();
  const task = useQuery({
    queryKey: ['tasks', 'one', id],
    queryFn: () => unwrap(api.GET('/tasks/{id}', { params: { path: { id } } })),
    refetchInterval: ({ state }) => (OPEN_STATES.includes(state.data?.status ?? '') ? WATCH_MS : false),
  });
  return (
    <SidePanel
      open
      onClose={onClose}
      title={task.data ? taskName(task.data.type) : t('tasks.one')}
      lead={<span className="font-mono text-xs">{id}</span>}
      actions={task.data && <Actions task={task.data} />}
    >
      {task.data ? (
        <div className="space-y-6">
          {task.isError && (
            <Notice tone="warning">
              {t('state.failed')} <RelativeTime at={task.dataUpdatedAt} />
            </Notice>
          )}
          {task.data.error && (
            <Notice tone={task.data.status === 'done' ? 'info' : 'error'}>
              <span className="whitespace-pre-wrap">{task.data.error}</span>
            </Notice>
          )}
          <TaskFacts task={task.data} />
          <section>
            <h3 className="mb-3 text-sm font-semibold">{t('tasks.steps')}</h3>
            <TaskSteps status={task.data.status} steps={task.data.log} />
          </section>
          <section>
            <h3 className="mb-2 text-sm font-semibold">{t('tasks.payload')}</h3>
            <pre className="rounded-lg bg-sunken p-3 font-mono text-xs whitespace-pre-wrap">
              {JSON.stringify(task.data.payload, null, 2)}
            </pre>
          </section>
        </div>
      ) : task.isError ? (
        <ErrorState error={task.error} onRetry={() => void task.refetch()} />
      ) : (
        <Skeleton lines={6} />
      )}
    </SidePanel>
  );
}

function TaskFacts({ task }: { task: Task }) {
  const { t } = useText();
  return (
    <Facts
      rows={[
        { name: t('tasks.status'), value: <TaskState status={task.status} /> },
        { name: t('tasks.attempts'), value: t('tasks.attemptsOf', { n: task.attempts, most: 5 }) },
        ...(task.next_attempt_at && OPEN_STATES.includes(task.status)
          ? [{ name: t('tasks.next'), value: <RelativeTime at={task.next_attempt_at} /> }]
          : []),
        ...(task.instance_id
          ? [
              {
                name: t('requests.instance'),
                value: (
                  <Link
                    href={`/instances?open=${encodeURIComponent(task.instance_id)}`}
                    className="rounded text-accent hover:underline"
                  >
                    {task.instance_id}
                  </Link>
                ),
              },
            ]
          : []),
        { name: t('tasks.source'), value: sourceText(task.source, t) || t('account.notSet') },
        { name: t('tasks.operator'), value: sourceText(task.operator, t) },
        ...(task.result ? [{ name: t('tasks.result'), value: task.result }] : []),
        { name: t('tasks.created'), value: <RelativeTime at={task.created_at} /> },
        { name: t('tasks.updated'), value: <RelativeTime at={task.updated_at} /> },
      ]}
    />
  );
}

function Actions({ task }: { task: Task }) {
  const i18n = useText();
  const { t } = i18n;
  const client = useQueryClient();
  const mayTask = useMayTask();
  const path = { params: { path: { id: task.id } } };
  const settle = {
    onSettled: () => client.invalidateQueries({ queryKey: ['tasks'] }),
    onError: (error: unknown) =>
      toast(outcomeOf(error) === 'unknown' ? 'unknown' : 'error', errorText(error, i18n)),
  };
  const retry = useMutation({ mutationFn: () => unwrap(api.POST('/tasks/{id}/retry', path)), ...settle });
  const cancel = useMutation({ mutationFn: () => unwrap(api.POST('/tasks/{id}/cancel', path)), ...settle });
  const stopped = task.status === 'failed' || task.status === 'dead';
  const waiting = task.status === 'failed' || task.status === 'pending';
  if (!mayTask(task)) return null;
  return (
    <>
      {stopped && (
        <Button size="small" busy={retry.isPending} onClick={() => retry.mutate()}>
          <RotateCw className="size-4" aria-hidden="true" />
          {t('tasks.retry')}
        </Button>
      )}
      {waiting && (
        <Button size="small" look="danger" busy={cancel.isPending} onClick={() => cancel.mutate()}>
          <Ban className="size-4" aria-hidden="true" />
          {t('tasks.cancel')}
        </Button>
      )}
    </>
  );
}
