// Sign in with e-mail and password, or through the identity provider when the server has one.
import { lazyPart } from '../lazy-part';
import { useMutation } from '@tanstack/react-query';
import { KeyRound } from 'lucide-react';
import { Suspense, useEffect, useRef, useState, type SyntheticEvent } from 'react';
import { errorText } from '../api/error-text';
import { useApp, useSession } from '../app';
import { useI18n } from '../i18n/i18n';
import { rememberPending, takePending } from '../session/return-to';
import type { EndReason } from '../session/session';
import { Button, buttonClass } from '../ui/button';
import { Field, PasswordField } from '../ui/field';
import { fieldText, focusField } from '../ui/form';
import { Notice } from '../ui/notice';
import { Skeleton } from '../ui/states';
import { useOptions } from './use-options';

const LoginStep = lazyPart(() => import('./second-factor/login-step'));

const ENDINGS = {
  ended: 'login.ended',
  elsewhere: 'login.elsewhere',
  'signed-out': 'login.signedOut',
} as const satisfies Record<EndReason, string>;

/** `next` is where a successful sign-in leads. */
export function LoginForm({ next }: { next: string }) {
  const i18n = useI18n();
  const { t } = i18n;
  const { session, account, ssoError, ssoStep } = useApp();
  const { endReason } = useSession();
  const options = useOptions();
  const form = useRef<HTMLFormElement>(null);
  const [step, setStep] = useState(ssoStep);
  /** Why the second factor led back here. */
  const [back, setBack] = useState<string | null>(null);
  const [missing, setMissing] = useState({ email: false, password: false });

  const login = useMutation({
    mutationFn: (fields: { email: string; password: string }) => account.login(fields.email, fields.password),
    onSuccess: (answer) => {
      // A sign-on that was begun and left must not let a later link take this session's place.
      takePending();
      if ('token' in answer) session.start(answer.token);
      else setStep({ token: answer.mfa_token, enrolment: answer.mfa_enrolment });
    },
    onError: () => focusField(form.current, 'password'),
  });

  useEffect(() => focusField(form.current, 'email'), [step]);

  function submit(event: SyntheticEvent<HTMLFormElement>) {
    event.preventDefault();
    if (login.isPending) return;
    const fields = new FormData(event.currentTarget);
    const email = fieldText(fields, 'email').trim();
    const password = fieldText(fields, 'password');
    setMissing({ email: email === '', password: password === '' });
    if (email === '') focusField(form.current, 'email');
    else if (password === '') focusField(form.current, 'password');
    else login.mutate({ email, password });
  }

  if (step !== null)
    return (
      <Suspense fallback={<Skeleton lines={3} />}>
        <LoginStep
          step={step}
          onBack={(why) => {
            login.reset();
            setBack(why);
            setStep(null);
          }}
        />
      </Suspense>
    );

  const failure = login.isError ? errorText(login.error, i18n) : back;
  return (
    <div className="space-y-5">
      {failure !== null ? (
        <Notice tone="error">{failure}</Notice>
      ) : ssoError !== null ? (
        <Notice tone="error">{t('login.ssoFailed', { message: ssoError })}</Notice>
      ) : (
        endReason !== null && (
          <Notice tone={endReason === 'ended' ? 'warning' : 'info'}>{t(ENDINGS[endReason])}</Notice>
        )
      )}

      <form ref={form} noValidate onSubmit={submit} className="space-y-4">
        <Field
          label={t('login.email')}
          name="email"
          type="email"
          autoComplete="username"
          inputMode="email"
          autoCapitalize="off"
          required
          error={missing.email ? t('login.emailMissing') : null}
        />
        <PasswordField
          label={t('login.password')}
          name="password"
          autoComplete="current-password"
          required
          error={missing.password ? t('login.passwordMissing') : null}
        />
        <Button type="submit" look="primary" busy={login.isPending} className="mt-2 min-h-11 w-full">
          {t(login.isPending ? 'login.busy' : 'login.submit')}
        </Button>
      </form>

      {/* Below the form: it is known a moment later, and the fields must not move under somebody's hands. */}
      {options.data?.sso === true && (
        <>
          <div className="flex items-center gap-3 text-sm text-muted">
            <span className="h-px flex-1 bg-line" />
            {t('login.or')}
            <span className="h-px flex-1 bg-line" />
          </div>
          <a
            href="api/v1/auth/sso"
            className={buttonClass('secondary', 'min-h-11 w-full')}
            onClick={() => rememberPending(next)}
          >
            <KeyRound className="size-4" aria-hidden="true" />
            {t('login.sso')}
          </a>
        </>
      )}
    </div>
  );
}
