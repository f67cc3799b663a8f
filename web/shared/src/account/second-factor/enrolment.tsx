// Sets a second factor up: the secret as a picture and as text, then the first code. Used in the middle of a login and on the profile.
import { useRef, useState, type SyntheticEvent } from 'react';
import { ApiError } from '../../api/envelope';
import { errorText } from '../../api/error-text';
import { useI18n } from '../../i18n/i18n';
import { Button } from '../../ui/button';
import { Field } from '../../ui/field';
import { fieldText, focusField } from '../../ui/form';
import { Notice } from '../../ui/notice';
import type { Enrolled, Enrolment as Begun, SecondFactorApi } from './api';
import { QrCode } from './qr-code';
import { useTexts } from './texts';
import { useRequest } from './use-api';

interface EnrolmentProps {
  begun: Begun;
  confirm: (api: SecondFactorApi, code: string) => Promise<Enrolled>;
  onEnrolled: (enrolled: Enrolled) => void;
  onCancel: () => void;
  /** Answers whether the failure was dealt with. */
  onFailure?: (error: unknown) => boolean;
}

export function Enrolment({ begun, confirm, onEnrolled, onCancel, onFailure }: EnrolmentProps) {
  const i18n = useI18n();
  const t = useTexts();
  const form = useRef<HTMLFormElement>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const request = useRequest((api, code: string) => confirm(api, code), {
    onSuccess: onEnrolled,
    onError: (error) => {
      if (onFailure?.(error)) return;
      const wrong = error instanceof ApiError && (error.code === '4012' || error.field === 'code');
      setProblem(wrong ? t('enrol.wrong') : null);
      focusField(form.current, 'code');
    },
  });

  function submit(event: SyntheticEvent<HTMLFormElement>) {
    event.preventDefault();
    if (request.isPending) return;
    const code = fieldText(new FormData(event.currentTarget), 'code').trim();
    setProblem(code === '' ? t('step.missing') : null);
    if (code === '') focusField(form.current, 'code');
    else request.mutate(code);
  }

  return (
    <form ref={form} noValidate onSubmit={submit} className="space-y-4">
      {request.isError && problem === null && <Notice tone="error">{errorText(request.error, i18n)}</Notice>}
      <p className="text-sm">{t('enrol.scan')}</p>
      <QrCode text={begun.otpauth_uri} label={t('enrol.picture')} />
      <div className="text-sm">
        <p className="text-muted">{t('enrol.type')}</p>
        <code className="mt-1 block font-mono break-all" data-secret>
          {begun.secret.match(/.{1,4}/g)?.join(' ')}
        </code>
      </div>
      <CodeField label={t('enrol.confirm')} error={problem} />
      <div className="flex flex-wrap gap-2">
        <Button type="submit" look="primary" busy={request.isPending}>
          {t('enrol.submit')}
        </Button>
        <Button onClick={onCancel}>{t('enrol.cancel')}</Button>
      </div>
    </form>
  );
}

/** Six digits of an app. Browsers and phones offer what they know by the name "one-time-code". */
export function CodeField({ label, error }: { label: string; error: string | null }) {
  return (
    <Field
      label={label}
      name="code"
      inputMode="numeric"
      autoComplete="one-time-code"
      spellCheck={false}
      required
      error={error}
      className="max-w-48 font-mono tracking-widest"
    />
  );
}
