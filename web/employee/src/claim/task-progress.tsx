// A task that works for the person, live: its steps as they come, how it ended, and what to do when it did not.
import { useQuery } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { Notice } from '@tidepool/shared/ui/notice';
import { ErrorState, Skeleton } from '@tidepool/shared/ui/states';
import { TaskSteps } from '@tidepool/shared/ui/task-steps';
import { useEffect } from 'react';
import { api } from '../api';
import { useText } from '../messages';

const EVERY_MS = 1000;

export function useTask(id: string) {
  return useQuery({
    queryKey: ['task', id],
    queryFn: () => unwrap(api.GET('/me/tasks/{id}', { params: { path: { id } } })),
    refetchInterval: ({ state }) =>
      state.data?.status === 'done' || state.data?.status === 'dead' ? false : EVERY_MS,
    staleTime: 0,
  });
}

export function TaskProgress({ id, onDone }: { id: string; onDone?: () => void }) {
  const { t } = useText();
  const task = useTask(id);
  const status = task.data?.status;
  useEffect(() => {
    if (status === 'done') onDone?.();
  }, [status, onDone]);
  if (task.data === undefined)
    return task.isError ? (
      <ErrorState error={task.error} onRetry={() => void task.refetch()} />
    ) : (
      <Skeleton />
    );
  const { steps, attempts, error } = task.data;
  return (
    <div className="space-y-3">
      <TaskSteps status={task.data.status} steps={steps.map((step) => ({ ...step, attempt: 1 }))} />
      {status === 'failed' && (
        <Notice tone="warning">{t('task.triesAgain', { attempt: attempts, error })}</Notice>
      )}
      {status === 'dead' && <Notice tone="error">{t('task.gaveUp', { error })}</Notice>}
    </div>
  );
}
