// A form in a dialog: sends its fields, says which were refused, by itself or by the server, closes when it is done. For
// those who may only read, its fields are disabled.
import { useMutation } from '@tanstack/react-query';
import { ApiError } from '@tidepool/shared/api/envelope';
import { errorText } from '@tidepool/shared/api/error-text';
import { Button } from '@tidepool/shared/ui/button';
import { Dialog } from '@tidepool/shared/ui/dialog';
import { FieldProblems } from '@tidepool/shared/ui/field-problems';
import { showField } from '@tidepool/shared/ui/form';
import { Notice } from '@tidepool/shared/ui/notice';
import { outcomeOf } from '@tidepool/shared/ui/outcome';
import { useEffect, useId, useRef, type ReactNode } from 'react';
import { useText } from '../messages';

interface FormDialogProps<Answer> {
  title: string;
  lead?: string;
  submit: string;
  width?: 'narrow' | 'wide';
  /** Nothing can be changed or sent. */
  readOnly?: boolean;
  /** May throw `FieldProblems` instead of sending. */
  send: (data: FormData) => Promise<Answer>;
  onDone: (answer: Answer) => void;
  /** Whether `onDone` shows something of the answer in place of the form. */
  staysOpen?: (answer: Answer) => boolean;
  onClose: () => void;
  /** `refused` says why a field was not taken, in the server's words or those of `FieldProblems`. */
  children: (refused: (field: string) => string | null) => ReactNode;
}

export function FormDialog<Answer>(props: FormDialogProps<Answer>) {
  const { title, lead, submit, width, readOnly = false, send, onDone, staysOpen, onClose, children } = props;
  const i18n = useText();
  const id = useId();
  const action = useMutation({
    mutationFn: send,
    // An answer may carry a secret that is shown once.
    gcTime: 0,
    onSuccess: (answer) => {
      if (!staysOpen?.(answer)) onClose();
      onDone(answer);
    },
  });
  const problems = action.error instanceof FieldProblems ? action.error.fields : null;
  const field =
    action.error instanceof ApiError ? action.error.field : (Object.keys(problems ?? {})[0] ?? null);
  const form = useRef<HTMLFormElement>(null);
  // In a long form what was refused, and why, may be out of sight.
  useEffect(() => {
    if (action.error === null || (field !== null && showField(form.current, field))) return;
    form.current?.lastElementChild?.scrollIntoView({ block: 'nearest' });
  }, [action.error, field]);
  const refused = (name: string) => {
    if (problems) return problems[name] ?? null;
    return field === name && action.error ? errorText(action.error, i18n).replace(/^\w+: /, '') : null;
  };
  return (
    <Dialog
      open
      onClose={onClose}
      title={title}
      lead={lead}
      width={width}
      foot={
        readOnly ? (
          <Button onClick={onClose}>{i18n.t('dialog.close')}</Button>
        ) : (
          <>
            <Button onClick={onClose}>{i18n.t('dialog.cancel')}</Button>
            <Button type="submit" form={id} look="primary" busy={action.isPending}>
              {submit}
            </Button>
          </>
        )
      }
    >
      <form
        ref={form}
        id={id}
        noValidate
        className="space-y-4"
        onSubmit={(event) => {
          event.preventDefault();
          // A form inside another one's dialog must not send both.
          event.stopPropagation();
          if (!readOnly && !action.isPending) action.mutate(new FormData(event.currentTarget));
        }}
      >
        {readOnly ? (
          <fieldset disabled className="min-w-0 space-y-4">
            {children(refused)}
          </fieldset>
        ) : (
          children(refused)
        )}
        {action.isError && !problems && (
          <Notice tone={outcomeOf(action.error) === 'unknown' ? 'warning' : 'error'}>
            {errorText(action.error, i18n)}
            {outcomeOf(action.error) === 'unknown' && ` ${i18n.t('outcome.unknownHint')}`}
          </Notice>
        )}
      </form>
    </Dialog>
  );
}
