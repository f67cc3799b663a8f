// The second half of a login: the code of the second factor, or setting one up where it is required and missing.
import { useEffect, useRef, useState, type SyntheticEvent } from 'react';
import { ApiError } from '../../api/envelope';
import { errorText } from '../../api/error-text';
import { useApp } from '../../app';
import { useI18n } from '../../i18n/i18n';
import { Button } from '../../ui/button';
import { Field } from '../../ui/field';
import { fieldText, focusField } from '../../ui/form';
import { Notice } from '../../ui/notice';
import { ErrorState, Skeleton } from '../../ui/states';
import type { Enrolled, Enrolment as Begun, LoginStep as Step } from './api';
import { CodeField, Enrolment } from './enrolment';
import { RecoveryCodes } from './recovery-codes';
import { useTexts } from './texts';
import { useRequest } from './use-api';

interface LoginStepProps {
  step: Step;
  /** Back to e-mail and password, with a word about why. */
  onBack: (why: string | null) => void;
}

export default function LoginStep({ step, onBack }: LoginStepProps) {
  const { session } = useApp();
  const open = (token: string) => session.start(token);
  return step.enrolment ? (
    <SetUp step={step.token} onBack={onBack} onOpen={open} />
  ) : (
    <ShowCode step={step.token} onBack={onBack} onOpen={open} />
  );
}

interface HalfProps {
  step: string;
  onBack: (why: string | null) => void;
  onOpen: (token: string) => void;
}

/** The step's own token has ended: the login begins again. */
const isOver = (error: unknown) => error instanceof ApiError && error.code === '4010';

function ShowCode({ step, onBack, onOpen }: HalfProps) {
  const i18n = useI18n();
  const t = useTexts();
  const form = useRef<HTMLFormElement>(null);
  const [recovery, setRecovery] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const request = useRequest((api, code: string) => api.showCode(step, code), {
    onSuccess: onOpen,
    onError: (error) => {
      if (isOver(error)) {
        onBack(t('step.expired'));
        return;
      }
      const wrong = error instanceof ApiError && error.code === '4012';
      setProblem(wrong ? t(recovery ? 'step.wrongRecovery' : 'step.wrong') : null);
      focusField(form.current, 'code');
    },
  });
  useEffect(() => focusField(form.current, 'code'), [recovery]);

  function submit(event: SyntheticEvent<HTMLFormElement>) {
    event.preventDefault();
    if (request.isPending) return;
    const code = fieldText(new FormData(event.currentTarget), 'code').trim();
    setProblem(code === '' ? t('step.missing') : null);
    if (code === '') focusField(form.current, 'code');
    else request.mutate(code);
  }

  return (
    <form ref={form} noValidate onSubmit={submit} className="space-y-4" aria-label={t('step.title')}>
      {request.isError && problem === null && <Notice tone="error">{errorText(request.error, i18n)}</Notice>}
      <p>{t(recovery ? 'step.recoveryLead' : 'step.lead')}</p>
      {recovery ? (
        <Field
          key="recovery"
          label={t('step.recovery')}
          name="code"
          autoComplete="off"
          autoCapitalize="off"
          spellCheck={false}
          required
          error={problem}
          className="font-mono"
        />
      ) : (
        <CodeField key="app" label={t('step.code')} error={problem} />
      )}
      <Button type="submit" look="primary" busy={request.isPending} className="min-h-11 w-full">
        {t(request.isPending ? 'step.busy' : 'step.submit')}
      </Button>
      <div className="flex flex-wrap justify-between gap-2">
        <Button
          look="quiet"
          onClick={() => {
            setProblem(null);
            request.reset();
            setRecovery(!recovery);
          }}
        >
          {t(recovery ? 'step.useApp' : 'step.useRecovery')}
        </Button>
        <Button look="quiet" onClick={() => onBack(null)}>
          {t('step.back')}
        </Button>
      </div>
    </form>
  );
}

function SetUp({ step, onBack, onOpen }: HalfProps) {
  const t = useTexts();
  const [begun, setBegun] = useState<Begun | null>(null);
  const [enrolled, setEnrolled] = useState<Enrolled | null>(null);
  const leave = (error: unknown) => {
    if (!isOver(error)) return false;
    onBack(t('step.expired'));
    return true;
  };
  const request = useRequest((api) => api.beginInLogin(step), {
    onSuccess: setBegun,
    onError: (error) => void leave(error),
  });
  const { mutate } = request;
  // Strict mode runs effects twice: the secret that was shown last is the one that counts.
  const asked = useRef(false);
  useEffect(() => {
    if (asked.current) return;
    asked.current = true;
    mutate(undefined);
  }, [mutate]);

  if (enrolled !== null)
    return <RecoveryCodes codes={enrolled.recovery_codes} onSaved={() => onOpen(enrolled.token)} />;
  return (
    <div className="space-y-4">
      <h2 className="text-lg font-semibold">{t('enrol.title')}</h2>
      <Notice tone="info">{t('enrol.required')}</Notice>
      {begun !== null ? (
        <Enrolment
          begun={begun}
          confirm={(api, code) => api.confirmInLogin(step, code)}
          onEnrolled={setEnrolled}
          onCancel={() => onBack(null)}
          onFailure={leave}
        />
      ) : request.isError ? (
        <ErrorState error={request.error} onRetry={() => mutate(undefined)} />
      ) : (
        <Skeleton lines={4} />
      )}
    </div>
  );
}
