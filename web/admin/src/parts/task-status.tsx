// A task's state in a word and a form, and its type in words.
import { TASK_TYPES, type TaskType } from '@tidepool/shared/api/registry.gen';
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

/** A type that this version does not know is shown as the server names it. */
export function taskName(type: string, t: (key: Key) => string): string {
  const known: readonly string[] = TASK_TYPES;
  return known.includes(type) ? t(`taskType.${type as TaskType}`) : type;
}

export function useTaskName() {
  const { t } = useText();
  return (type: string) => taskName(type, t);
}
