// Changes the password of the signed-in account; the fresh token takes the place of the one that the change ends.
import { useMutation } from '@tanstack/react-query';
import { useRef, useState, type SyntheticEvent } from 'react';
import { ApiError } from '../api/envelope';
import { errorText } from '../api/error-text';
import { useApp } from '../app';
import { useI18n, type SharedKey } from '../i18n/i18n';
import { Button } from '../ui/button';
import { PasswordField } from '../ui/field';
import { fieldText, focusField } from '../ui/form';
import { Notice } from '../ui/notice';

const SHORTEST = 8;

interface Mistakes {
  old?: SharedKey;
  new?: SharedKey;
}

/** `email` lets a password manager know which entry to change. */
export function PasswordForm({ email }: { email: string }) {
  const i18n = useI18n();
  const { t } = i18n;
  const { session, account } = useApp();
  const form = useRef<HTMLFormElement>(null);
  const [mistakes, setMistakes] = useState<Mistakes>({});

  const change = useMutation({
    mutationFn: (fields: { old: string; new: string }) => account.changePassword(fields.old, fields.new),
    onSuccess: (token) => {
      session.renew(token);
      form.current?.reset();
    },
    onError: (error) => {
      // The form has checked everything else of the old password: what remains is that it is wrong.
      if (!(error instanceof ApiError) || error.field !== 'old') return;
      setMistakes({ old: 'password.wrongOld' });
      focusField(form.current, 'old');
    },
  });

  function submit(event: SyntheticEvent<HTMLFormElement>) {
    event.preventDefault();
    if (change.isPending) return;
    const data = new FormData(event.currentTarget);
    const fields = { old: fieldText(data, 'old'), new: fieldText(data, 'new') };
    const found = check(fields);
    setMistakes(found);
    change.reset();
    if (found.old) focusField(form.current, 'old');
    else if (found.new) focusField(form.current, 'new');
    else change.mutate(fields);
  }

  return (
    <form ref={form} noValidate onSubmit={submit} className="max-w-sm space-y-4">
      {change.isSuccess && <Notice tone="success">{t('password.done')}</Notice>}
      {change.isError && !mistakes.old && <Notice tone="error">{errorText(change.error, i18n)}</Notice>}
      <input type="text" name="username" autoComplete="username" value={email} readOnly hidden />
      <PasswordField
        label={t('password.old')}
        name="old"
        autoComplete="current-password"
        required
        error={mistakes.old ? t(mistakes.old) : null}
      />
      <PasswordField
        label={t('password.new')}
        name="new"
        autoComplete="new-password"
        required
        hint={t('password.hint')}
        error={mistakes.new ? t(mistakes.new) : null}
      />
      <Button type="submit" look="primary" busy={change.isPending}>
        {t(change.isPending ? 'password.busy' : 'password.submit')}
      </Button>
    </form>
  );
}

function check(fields: { old: string; new: string }): Mistakes {
  if (fields.old === '') return { old: 'password.oldMissing' };
  // Counted as the server counts: by characters, not by UTF-16 units.
  if (Array.from(fields.new).length < SHORTEST) return { new: 'password.tooShort' };
  if (fields.new === fields.old) return { new: 'password.same' };
  return {};
}
