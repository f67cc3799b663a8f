// Where a freshly claimed instance's chat will be: the steps of its setting up, until it can be talked to. If it cannot be set up,
// another one is offered.
import { Button } from '@tidepool/shared/ui/button';
import { Card } from '@tidepool/shared/ui/panel';
import { useCallback } from 'react';
import type { Instance } from '../instances-query';
import { useText } from '../messages';
import { GetAnother } from './get-another';
import { setSetup } from './setups';
import { TaskProgress, useTask } from './task-progress';

export default function SetupView({ instance, task }: { instance: Instance; task: string }) {
  const { t } = useText();
  const leave = useCallback(() => setSetup(instance.id, null), [instance.id]);
  const failed = useTask(task).data?.status === 'dead';
  return (
    <div className="min-w-0 flex-1 overflow-y-auto">
      <div className="mx-auto max-w-xl px-4 py-[8vh]">
        <h1 className="text-2xl font-semibold">
          {t(failed ? 'setup.failed' : 'setup.title', { name: instance.name })}
        </h1>
        <p className="mt-1.5 mb-6 text-muted">{t(failed ? 'setup.failedLead' : 'setup.lead')}</p>
        <Card title={t('setup.steps')}>
          <TaskProgress id={task} onDone={leave} />
        </Card>
        <div className="mt-4 flex flex-wrap justify-end gap-2">
          <Button onClick={leave}>{t('setup.skip')}</Button>
          {failed && <GetAnother instance={instance} />}
        </div>
      </div>
    </div>
  );
}
