// Who may put a task into the queue, retry and cancel it: whoever manages tasks and may also do what the task does.
import { TASK_PERMISSIONS, type Permission, type TaskType } from '@tidepool/shared/api/registry.gen';
import { useRights } from '../me';
import type { Task } from '../records';

/** What a task does needs this; a type that this version does not know is left to the server. */
function neededBy({ type, payload }: Pick<Task, 'type'> & { payload?: unknown }): Permission {
  const { confined } = (payload ?? {}) as { confined?: unknown };
  // It takes the instance out of its cell.
  if (type === 'confine_instance' && confined === false) return 'cells.open';
  return Object.hasOwn(TASK_PERMISSIONS, type) ? TASK_PERMISSIONS[type as TaskType] : 'tasks.manage';
}

export function useMayTask() {
  const { may } = useRights();
  return (task: Parameters<typeof neededBy>[0]) => may('tasks.manage') && may(neededBy(task));
}
