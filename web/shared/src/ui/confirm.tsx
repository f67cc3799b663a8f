// Asks before something is destroyed: says what it will touch and, where it cannot be taken back, wants the thing's name typed.
import { useMutation } from '@tanstack/react-query';
import { useId, useState, type ReactNode } from 'react';
import { errorText } from '../api/error-text';
import { useI18n } from '../i18n/i18n';
import { Button } from './button';
import { Dialog } from './dialog';
import { Notice } from './notice';
import { outcomeOf } from './outcome';

interface ConfirmProps {
  title: string;
  /** What it will touch, in sentences. */
  children: ReactNode;
  /** Has to be typed before the button works. */
  name?: string;
  confirm: string;
  danger?: boolean;
  run: () => Promise<unknown>;
  onDone?: () => void;
  onClose: () => void;
}

export function Confirm(props: ConfirmProps) {
  const { title, children, name, confirm, danger = true, run, onDone, onClose } = props;
  const i18n = useI18n();
  const { t } = i18n;
  const id = useId();
  const [typed, setTyped] = useState('');
  const action = useMutation({
    mutationFn: run,
    onSuccess: () => {
      onClose();
      onDone?.();
    },
  });
  const ready = name === undefined || typed.trim() === name;
  return (
    <Dialog
      open
      onClose={onClose}
      title={title}
      foot={
        <>
          <Button onClick={onClose}>{t('dialog.cancel')}</Button>
          <Button
            type="submit"
            form={id}
            look={danger ? 'danger' : 'primary'}
            busy={action.isPending}
            disabled={!ready}
          >
            {confirm}
          </Button>
        </>
      }
    >
      <form
        id={id}
        className="space-y-4"
        onSubmit={(event) => {
          event.preventDefault();
          if (ready && !action.isPending) action.mutate();
        }}
      >
        <div className="space-y-2 text-sm">{children}</div>
        {name !== undefined && (
          <div className="space-y-1.5">
            <label htmlFor={`${id}-name`} className="block text-sm font-medium">
              {t('confirm.type', { name })}
            </label>
            <input
              id={`${id}-name`}
              value={typed}
              onChange={(event) => setTyped(event.target.value)}
              autoComplete="off"
              spellCheck={false}
              className="min-h-11 w-full rounded-lg border border-control bg-surface px-3 py-2 font-mono text-sm"
            />
          </div>
        )}
        {action.isError && (
          <Notice tone={outcomeOf(action.error) === 'unknown' ? 'warning' : 'error'}>
            {errorText(action.error, i18n)}
            {outcomeOf(action.error) === 'unknown' && ` ${t('outcome.unknownHint')}`}
          </Notice>
        )}
      </form>
    </Dialog>
  );
}
