// The task queue: what waits, runs, failed; a row opens the task's drawer.
import { useQueryClient } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { TASK_TYPES } from '@tidepool/shared/api/registry.gen';
import { RelativeTime } from '@tidepool/shared/i18n/time';
import { Page } from '@tidepool/shared/shell/page';
import type { Column } from '@tidepool/shared/table/columns';
import { DataTable } from '@tidepool/shared/table/data-table';
import { useTableState } from '@tidepool/shared/table/table-state';
import { Button } from '@tidepool/shared/ui/button';
import { fieldText } from '@tidepool/shared/ui/form';
import { SelectField } from '@tidepool/shared/ui/select';
import { TextArea } from '@tidepool/shared/ui/text-area';
import { Plus } from 'lucide-react';
import { useMemo, useState } from 'react';
import { api } from '../api';
import { useList } from '../lists';
import { useMay } from '../me';
import { useText } from '../messages';
import { useTaskCounts } from '../overview/queries';
import { Email } from '../parts/email';
import { Batch } from '../parts/batch';
import { FilterChip } from '../parts/filter-chip';
import { FormDialog } from '../parts/form-dialog';
import { useMayTask } from '../parts/task-permission';
import { TaskState, useTaskName } from '../parts/task-status';
import { oneOf, TASK_STATUSES, type Task } from '../records';
import { sourceText } from '../source-text';
import { useOpenTask } from '../task-drawer';

const keyOf = (one: Task) => one.id;

export default function Tasks() {
  const { t, number } = useText();
  const state = useTableState(['status', 'type', 'instance_id']);
  const open = useOpenTask();
  const taskName = useTaskName();
  const counts = useTaskCounts();
  const mayManage = useMay('tasks.manage');
  const mayTask = useMayTask();
  const [adding, setAdding] = useState(false);
  const [retrying, setRetrying] = useState<readonly Task[] | null>(null);
  const columns = useTaskColumns();
  const { query, fetchPage } = useList('tasks', state, (paging, filters) =>
    unwrap(
      api.GET('/task-queue', {
        params: {
          query: {
            ...paging,
            status: oneOf(filters.status, TASK_STATUSES),
            type: filters.type,
            instance_id: filters.instance_id,
          },
        },
      }),
    ),
  );
  return (
    <Page
      wide
      title={t('nav.tasks')}
      action={
        mayManage && (
          <Button onClick={() => setAdding(true)}>
            <Plus className="size-4" aria-hidden="true" />
            {t('tasks.add')}
          </Button>
        )
      }
    >
      {counts.data && (
        <ul className="mb-4 flex flex-wrap gap-2">
          {TASK_STATUSES.map((status) => (
            <li key={status}>
              <button
                type="button"
                aria-pressed={state.filters.status === status}
                onClick={() => state.set({ status: state.filters.status === status ? null : status })}
                className="flex min-h-10 items-center gap-3 rounded-lg border border-line bg-surface px-3 text-sm hover:border-control aria-pressed:border-accent aria-pressed:bg-accent-soft"
              >
                <TaskState status={status} />
                <span className="font-semibold tabular-nums">{number(counts.data[status])}</span>
              </button>
            </li>
          ))}
        </ul>
      )}
      <DataTable
        id="tasks"
        caption={t('nav.tasks')}
        columns={columns}
        query={query}
        state={state}
        rowKey={keyOf}
        onOpen={(one) => open(one.id)}
        search={t('tasks.search')}
        filters={
          <>
            <FilterChip
              state={state}
              name="type"
              label={t('tasks.type')}
              choices={TASK_TYPES.map((value) => ({ value, label: taskName(value) }))}
            />
            {state.filters.instance_id && (
              <FilterChip state={state} name="instance_id" label={t('requests.instance')} choices={[]} />
            )}
          </>
        }
        fetchPage={fetchPage}
        selectionActions={
          mayManage
            ? (selection) => (
                <Button size="small" onClick={() => setRetrying(selection.rows)}>
                  {t('tasks.retry')}
                </Button>
              )
            : undefined
        }
        empty={{ title: t('tasks.none'), text: t('tasks.noneText') }}
      />
      {adding && <AddTask onClose={() => setAdding(false)} />}
      {retrying && (
        <Batch
          title={t('tasks.retryMany')}
          lead={t('tasks.retryLead')}
          confirm={t('tasks.retry')}
          items={retrying.map((task) => ({
            id: task.id,
            label: `${taskName(task.type)} ${task.instance_id ?? ''}`,
            effect: t(`task.${task.status}`),
            skip:
              task.status !== 'failed' && task.status !== 'dead'
                ? t(`task.${task.status}`)
                : mayTask(task)
                  ? undefined
                  : t('forbidden.action'),
          }))}
          run={({ id }) => unwrap(api.POST('/tasks/{id}/retry', { params: { path: { id } } }))}
          changes={['tasks']}
          onClose={() => setRetrying(null)}
        />
      )}
    </Page>
  );
}

function useTaskColumns(): Column<Task>[] {
  const { t } = useText();
  const taskName = useTaskName();
  return useMemo(
    () => [
      {
        key: 'type',
        label: t('tasks.type'),
        sort: 'type',
        csv: (one) => one.type,
        cell: (one) => taskName(one.type),
      },
      {
        key: 'status',
        label: t('tasks.status'),
        sort: 'status',
        csv: (one) => one.status,
        cell: (one) => <TaskState status={one.status} />,
      },
      {
        key: 'instance',
        label: t('requests.instance'),
        csv: (one) => one.instance_id,
        cell: (one) => one.instance_id,
      },
      {
        key: 'attempts',
        label: t('tasks.attempts'),
        sort: 'attempts',
        end: true,
        csv: (one) => one.attempts,
        cell: (one) => one.attempts,
      },
      {
        key: 'error',
        label: t('tasks.error'),
        wrap: true,
        csv: (one) => one.error,
        cell: (one) => one.error && <span className="line-clamp-1 max-w-96 text-danger">{one.error}</span>,
      },
      {
        key: 'source',
        label: t('tasks.source'),
        csv: (one) => one.source,
        cell: (one) => one.source && <Email address={sourceText(one.source, t)} />,
      },
      {
        key: 'operator',
        label: t('tasks.operator'),
        csv: (one) => one.operator,
        cell: (one) => <Email address={sourceText(one.operator, t)} />,
      },
      {
        key: 'created',
        label: t('tasks.created'),
        sort: 'created_at',
        csv: (one) => one.created_at,
        cell: (one) => <RelativeTime at={one.created_at} />,
      },
      {
        key: 'next',
        label: t('tasks.next'),
        sort: 'next_attempt_at',
        extra: true,
        csv: (one) => one.next_attempt_at,
        cell: (one) => one.next_attempt_at && <RelativeTime at={one.next_attempt_at} />,
      },
    ],
    // The names come from the same texts.
    // eslint-disable-next-line react-hooks/exhaustive-deps -- taskName changes with t alone.
    [t],
  );
}

function AddTask({ onClose }: { onClose: () => void }) {
  const { t } = useText();
  const client = useQueryClient();
  const open = useOpenTask();
  const taskName = useTaskName();
  const mayTask = useMayTask();
  return (
    <FormDialog<Task>
      title={t('tasks.add')}
      lead={t('tasks.addLead')}
      submit={t('tasks.add')}
      onClose={onClose}
      onDone={(task) => {
        void client.invalidateQueries({ queryKey: ['tasks'] });
        open(task.id);
      }}
      send={(data) => {
        const payload = JSON.parse(fieldText(data, 'payload')) as Record<string, never>;
        return unwrap(api.POST('/tasks', { body: { type: fieldText(data, 'type'), payload } }));
      }}
    >
      {(refused) => (
        <>
          <SelectField
            label={t('tasks.type')}
            name="type"
            choices={TASK_TYPES.filter((type) => mayTask({ type })).map((value) => ({
              value,
              label: taskName(value),
            }))}
          />
          <TextArea
            label={t('tasks.payload')}
            name="payload"
            mono
            rows={4}
            defaultValue={'{\n  "instance_id": ""\n}'}
            hint={t('tasks.payloadHint')}
            error={refused('payload')}
          />
        </>
      )}
    </FormDialog>
  );
}
