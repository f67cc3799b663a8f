// An instance that is on no server yet: its gateway is looked for where its record says, or it is made there.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { errorText } from '@tidepool/shared/api/error-text';
import { Button } from '@tidepool/shared/ui/button';
import { Dialog } from '@tidepool/shared/ui/dialog';
import { Notice } from '@tidepool/shared/ui/notice';
import { outcomeOf } from '@tidepool/shared/ui/outcome';
import { toast } from '@tidepool/shared/ui/toast';
import { Hammer, Search } from 'lucide-react';
import { useState } from 'react';
import { api } from '../api';
import { useMay } from '../me';
import { isOnNoServer } from '../parts/cell';
import { useMayTask } from '../parts/task-permission';
import type { InstanceDetail, PlaceFound } from '../records';
import { ModelChoice, type ModelWish } from '../server/model-choice';
import { useOpenTask, useTaskToast } from '../task-drawer';
import { addTask, findOnServer } from './actions';
import { usePlaceText } from './place-texts';

const PROVISION = 'provision_instance';
const OPEN_STATES: readonly string[] = ['pending', 'processing', 'failed'];

/** Says so, with the ways to change it; nothing for an instance that is somewhere. */
export function NotOnServer({ instance }: { instance: InstanceDetail }) {
  const [looking, setLooking] = useState(false);
  return (
    <>
      {isOnNoServer(instance) && <Missing instance={instance} onLook={() => setLooking(true)} />}
      {/* Not inside of it: what was found stays to be read when the instance is on its server. */}
      {looking && <LookDialog instance={instance} onClose={() => setLooking(false)} />}
    </>
  );
}

function useChanged() {
  const client = useQueryClient();
  return () => {
    for (const root of ['instances', 'tasks', 'state', 'cell'])
      void client.invalidateQueries({ queryKey: [root] });
  };
}

function Missing({ instance, onLook }: { instance: InstanceDetail; onLook: () => void }) {
  const i18n = usePlaceText();
  const { t } = i18n;
  const mayAdopt = useMay('instances.adopt');
  const mayMake = useMayTask()({ type: PROVISION });
  const notify = useTaskToast();
  const openTask = useOpenTask();
  const changed = useChanged();
  const { id, name, server_name: server, gateway_port: port } = instance;
  // As the tab of its tasks asks.
  const tasks = useQuery({
    queryKey: ['tasks', 'of', id],
    queryFn: () =>
      unwrap(api.GET('/tasks', { params: { query: { instance_id: id, page: 1, page_size: 50 } } })),
  });
  const making = tasks.data?.list.find(
    (task) => task.type === PROVISION && OPEN_STATES.includes(task.status),
  );
  const make = useMutation({
    mutationFn: () => addTask(PROVISION, id),
    onSuccess: (task) => notify(task.id, t('place.makeQueued', { name })),
    onError: (error) => toast(outcomeOf(error) === 'unknown' ? 'unknown' : 'error', errorText(error, i18n)),
    onSettled: changed,
  });
  // Until it is known whether a task makes it, neither may be said.
  if (tasks.isPending) return null;
  return (
    <div className="space-y-3">
      <Notice tone={making ? 'info' : 'warning'}>
        <p className="font-medium">{t('place.none')}</p>
        <p>{making ? t('place.making', { server }) : t('place.noneText', { server, port: String(port) })}</p>
      </Notice>
      {making ? (
        <Button size="small" onClick={() => openTask(making.id)}>
          {t('tasks.watch')}
        </Button>
      ) : (
        (mayAdopt || mayMake) && (
          <div className="flex flex-wrap gap-2">
            {mayAdopt && (
              <Button size="small" onClick={onLook}>
                <Search className="size-4" aria-hidden="true" />
                {t('place.look')}
              </Button>
            )}
            {mayMake && (
              <Button size="small" busy={make.isPending} onClick={() => make.mutate()}>
                {!make.isPending && <Hammer className="size-4" aria-hidden="true" />}
                {t('place.make')}
              </Button>
            )}
          </div>
        )
      )}
    </div>
  );
}

function LookDialog({ instance, onClose }: { instance: InstanceDetail; onClose: () => void }) {
  const i18n = usePlaceText();
  const { t } = i18n;
  const openTask = useOpenTask();
  const changed = useChanged();
  const [models, setModels] = useState<ModelWish>({ keepsLlm: true, restart: false });
  const look = useMutation({
    mutationFn: () => findOnServer(instance.id, models),
    onSettled: changed,
  });
  const found = look.data;
  const isThere = found !== undefined && found.found !== 'nothing';
  const taskId = found?.task_id;
  return (
    <Dialog
      open
      onClose={onClose}
      title={t('place.lookTitle', { name: instance.name, server: instance.server_name })}
      lead={t('place.lookLead', { port: String(instance.gateway_port) })}
      foot={
        isThere ? (
          <>
            {taskId != null && (
              <Button
                onClick={() => {
                  onClose();
                  openTask(taskId);
                }}
              >
                {t('tasks.watch')}
              </Button>
            )}
            <Button look="primary" onClick={onClose}>
              {t('dialog.close')}
            </Button>
          </>
        ) : (
          <>
            <Button onClick={onClose}>{t(found ? 'dialog.close' : 'dialog.cancel')}</Button>
            <Button look="primary" busy={look.isPending} onClick={() => look.mutate()}>
              {t(found ? 'place.lookAgain' : 'place.lookSubmit')}
            </Button>
          </>
        )
      }
    >
      <div className="space-y-4">
        {!isThere && <ModelChoice value={models} onChange={setModels} />}
        {found && <FoundNotice found={found} server={instance.server_name} />}
        {look.isError && (
          <Notice tone={outcomeOf(look.error) === 'unknown' ? 'warning' : 'error'}>
            {errorText(look.error, i18n)}
            {outcomeOf(look.error) === 'unknown' && ` ${t('outcome.unknownHint')}`}
          </Notice>
        )}
      </div>
    </Dialog>
  );
}

function FoundNotice({ found, server }: { found: PlaceFound; server: string }) {
  const { t } = usePlaceText();
  if (found.found === 'adopted')
    return (
      <Notice tone="success">
        {t('place.adopted')} {found.task_id != null && t('place.adoptedTask')}
      </Notice>
    );
  if (found.found === 'answers') return <Notice tone="success">{t('place.answers', { server })}</Notice>;
  return (
    <Notice tone="warning">
      <p className="wrap-anywhere">{t('place.nothing', { detail: found.found_detail ?? '–' })}</p>
      <p>{t('place.nothingText', { server })}</p>
    </Notice>
  );
}
