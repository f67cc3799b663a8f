// A task's state in a word and a form, and its type in words.
import { Status, type Tone } from '@tidepool/shared/ui/badge';
import { useText, type Key } from '../messages';
import type { TaskStatus } from '../records';

const TONES: Record<TaskStatus, Tone> = {
  pending: 'none',
  processing: 'busy',
  done: 'good',
  failed: 'warn',
  dead: 'bad',
};

export function TaskState({ status }: { status: TaskStatus }) {
  const { t } = useText();
  return <Status tone={TONES[status]}>{t(`task.${status}`)}</Status>;
}

export const TASK_TYPES = [
  'init_instance',
  'bootstrap_profession_instance',
  'apply_marketplace_item',
  'sync_models_to_instance',
  'sync_key_to_instance',
  'provision_instance',
  'retire_instance',
  'clean_instance',
  'write_config',
  'restart_instance',
  'upgrade_instance',
  'confine_instance',
  'prepare_server',
  'repair_instance',
  'apply_key',
  'clear_webhook',
  'deliver_alert',
] as const;

/** A type that this version does not know is shown as the server names it. */
export function taskName(type: string, t: (key: Key) => string): string {
  return TASK_TYPES.includes(type as (typeof TASK_TYPES)[number]) ? t(`taskType.${type}` as Key) : type;
}

export function useTaskName() {
  const { t } = useText();
  return (type: string) => taskName(type, t);
}
