// Who may put a task into the queue, retry and cancel it: whoever manages tasks and may also do what the task does.
import type { TaskType } from '@tidepool/shared/api/registry.gen';
import { useRights } from '../me';
import type { Permission } from '../permission';
import type { Task } from '../records';

const NEEDS: Readonly<Record<TaskType, Permission>> = {
  init_instance: 'people.manage',
  bootstrap_profession_instance: 'pools.manage',
  apply_marketplace_item: 'marketplace.manage',
  sync_models_to_instance: 'instances.manage',
  sync_key_to_instance: 'instances.manage',
  provision_instance: 'instances.manage',
  retire_instance: 'instances.manage',
  clean_instance: 'instances.manage',
  write_config: 'instances.manage',
  restart_instance: 'instances.manage',
  upgrade_instance: 'instances.manage',
  confine_instance: 'instances.manage',
  prepare_server: 'servers.manage',
  repair_instance: 'instances.manage',
  apply_key: 'keys.manage',
  clear_webhook: 'people.manage',
  deliver_alert: 'alerts.rules',
};

/** What a task does needs this; a type that this version does not know is left to the server. */
function neededBy({ type, payload }: Pick<Task, 'type'> & { payload?: unknown }): Permission {
  const { confined } = (payload ?? {}) as { confined?: unknown };
  // It takes the instance out of its cell.
  if (type === 'confine_instance' && confined === false) return 'cells.open';
  return type in NEEDS ? NEEDS[type as keyof typeof NEEDS] : 'tasks.manage';
}

export function useMayTask() {
  const { may } = useRights();
  return (task: Parameters<typeof neededBy>[0]) => may('tasks.manage') && may(neededBy(task));
}
