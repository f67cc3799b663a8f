// The tasks of one instance, newest first; each opens its drawer. A new one can be put into the queue by hand.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { errorText } from '@tidepool/shared/api/error-text';
import type { TaskType } from '@tidepool/shared/api/registry.gen';
import { RelativeTime } from '@tidepool/shared/i18n/time';
import { Menu } from '@tidepool/shared/ui/menu';
import { buttonClass } from '@tidepool/shared/ui/button';
import { EmptyState } from '@tidepool/shared/ui/states';
import { toast } from '@tidepool/shared/ui/toast';
import { Plus } from 'lucide-react';
import { api } from '../api';
import { useText } from '../messages';
import { QueryState } from '../parts/query-state';
import { useMayTask } from '../parts/task-permission';
import { TaskState, useTaskName } from '../parts/task-status';
import type { InstanceDetail } from '../records';
import { useOpenTask } from '../task-drawer';
import { addTask } from './actions';

/** What needs no more than the instance's id. */
const BY_HAND = [
  'provision_instance',
  'sync_models_to_instance',
  'sync_key_to_instance',
  'clean_instance',
] as const;

export function TasksTab({ instance }: { instance: InstanceDetail }) {
  const i18n = useText();
  const { t } = i18n;
  const client = useQueryClient();
  const open = useOpenTask();
  const taskName = useTaskName();
  const mayTask = useMayTask();
  const offered = BY_HAND.filter((type) => mayTask({ type }));
  const tasks = useQuery({
    queryKey: ['tasks', 'of', instance.id],
    queryFn: () =>
      unwrap(api.GET('/tasks', { params: { query: { instance_id: instance.id, page: 1, page_size: 50 } } })),
  });
  const add = useMutation({
    mutationFn: (type: TaskType) => addTask(type, instance.id),
    onSuccess: ({ id }) => {
      void client.invalidateQueries({ queryKey: ['tasks'] });
      open(id);
    },
    onError: (error) => toast('error', errorText(error, i18n)),
  });
  return (
    <div className="space-y-4">
      {offered.length > 0 && (
        <div className="flex justify-end">
          <Menu
            label={t('tasks.add')}
            triggerClass={buttonClass('secondary', '', 'small')}
            trigger={
              <>
                <Plus className="size-4" aria-hidden="true" />
                {t('tasks.add')}
              </>
            }
            entries={offered.map((type) => ({ label: taskName(type), run: () => add.mutate(type) }))}
          />
        </div>
      )}
      <QueryState query={tasks}>
        {({ list }) =>
          list.length === 0 ? (
            <EmptyState title={t('tasks.none')}>{t('tasks.noneText')}</EmptyState>
          ) : (
            <ul className="divide-y divide-line rounded-lg border border-line">
              {list.map((task) => (
                <li key={task.id}>
                  <button
                    type="button"
                    onClick={() => open(task.id)}
                    className="flex w-full flex-wrap items-center gap-x-4 gap-y-1 px-4 py-2.5 text-start text-sm -outline-offset-2 hover:bg-sunken"
                  >
                    <span className="min-w-0 flex-1 font-medium">{taskName(task.type)}</span>
                    <TaskState status={task.status} />
                    <span className="text-muted">
                      <RelativeTime at={task.created_at} />
                    </span>
                    {task.error && <span className="w-full truncate text-danger">{task.error}</span>}
                  </button>
                </li>
              ))}
            </ul>
          )
        }
      </QueryState>
    </div>
  );
}
