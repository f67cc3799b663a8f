// Moves an adopted instance into a cell, and back to where it was. Both are tasks that interrupt whoever chats with it.
import { Confirm } from '@tidepool/shared/ui/confirm';
import { Notice } from '@tidepool/shared/ui/notice';
import { useState } from 'react';
import type { InstanceDetail } from '../records';
import { ModelChoice } from '../server/model-choice';
import { useTaskToast } from '../task-drawer';
import { moveBack, moveIntoCell } from './actions';
import { usePlaceText } from './place-texts';

interface MoveProps {
  instance: InstanceDetail;
  onDone: () => void;
  onClose: () => void;
}

export function MoveIntoCell({ instance, onDone, onClose }: MoveProps) {
  const { t } = usePlaceText();
  const notify = useTaskToast();
  const { id, name, home, server_name: server, own_llm: ownLlm } = instance;
  const [keepsLlm, setKeepsLlm] = useState(ownLlm);
  const isProcess = instance.runner === 'process';
  return (
    <Confirm
      title={t('move.intoTitle', { name })}
      name={id}
      confirm={t('move.into')}
      run={async () => {
        const { task_id } = await moveIntoCell(id, keepsLlm === ownLlm ? null : keepsLlm);
        notify(task_id, t('move.intoQueued', { name }));
      }}
      onDone={onDone}
      onClose={onClose}
    >
      <p>{t('move.intoLead', { server })}</p>
      <ol className="list-decimal space-y-1 ps-5 wrap-anywhere">
        <li>{t('move.stops')}</li>
        <li>{t('move.copies', { home })}</li>
        <li>{t(isProcess ? 'move.startsProcess' : 'move.starts')}</li>
        {!isProcess && <li>{t('move.keeps', { home })}</li>}
      </ol>
      {isProcess && (
        <Notice tone="warning">
          <span className="wrap-anywhere">{t('move.keepsProcess', { home })}</span>
        </Notice>
      )}
      <Holder instance={instance} />
      <div className="pt-2">
        <ModelChoice
          value={{ keepsLlm, restart: false }}
          ownHint={t('move.ownHint')}
          asksRestart={false}
          onChange={(next) => setKeepsLlm(next.keepsLlm)}
        />
      </div>
    </Confirm>
  );
}

export function MoveBack({ instance, onDone, onClose }: MoveProps) {
  const { t } = usePlaceText();
  const notify = useTaskToast();
  const { id, name, moved_from: from } = instance;
  return (
    <Confirm
      title={t('move.backTitle', { name })}
      name={id}
      confirm={t('move.back')}
      run={async () => notify((await moveBack(id)).task_id, t('move.backQueued', { name }))}
      onDone={onDone}
      onClose={onClose}
    >
      <Notice tone="warning">{t('move.backWarning')}</Notice>
      <p className="wrap-anywhere">
        {t(from?.runner === 'process' ? 'move.backProcess' : 'move.backText', { home: from?.home ?? '' })}
      </p>
      <Holder instance={instance} />
    </Confirm>
  );
}

function Holder({ instance }: { instance: InstanceDetail }) {
  const { t } = usePlaceText();
  const { assigned_email: email } = instance;
  return email ? <p className="wrap-anywhere">{t('cell.interrupts', { email })}</p> : null;
}
