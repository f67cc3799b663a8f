// The second factor on the profile: whether it is on, setting it up, another app, new recovery codes, switching it off.
import type { UseQueryResult } from '@tanstack/react-query';
import { ShieldCheck } from 'lucide-react';
import { useRef, useState, type SyntheticEvent } from 'react';
import { ApiError } from '../../api/envelope';
import { errorText } from '../../api/error-text';
import { useApp } from '../../app';
import { useI18n } from '../../i18n/i18n';
import { Badge } from '../../ui/badge';
import { Button } from '../../ui/button';
import { Field, PasswordField } from '../../ui/field';
import { fieldText, focusField } from '../../ui/form';
import { Notice } from '../../ui/notice';
import { Panel } from '../../ui/panel';
import type { Enrolment as Begun, Proof } from './api';
import { Enrolment } from './enrolment';
import { RecoveryCodes } from './recovery-codes';
import { useTexts, type Key } from './texts';
import { useRequest } from './use-api';

export interface Account {
  email: string;
  has_password: boolean;
  mfa_available: boolean;
  mfa_enabled: boolean;
  mfa_required: boolean;
  recovery_codes_left: number;
}

type Action = 'enrol' | 'codes' | 'off';

type View =
  | { at: 'state'; done?: Key }
  | { at: 'proof'; action: Action }
  | { at: 'enrolment'; begun: Begun }
  | { at: 'codes'; codes: string[]; done?: Key };

/** Fewer than this is worth a word. */
const FEW = 4;

/** The card on the profile. */
export function SecondFactorCard({ query }: { query: UseQueryResult<Account> }) {
  const t = useTexts();
  return (
    <Panel title={t('panel.title')} icon={<ShieldCheck aria-hidden="true" />} query={query}>
      {(account) =>
        account.mfa_available ? (
          <SecondFactor account={account} onChange={() => void query.refetch()} />
        ) : (
          <p>{t('panel.sso')}</p>
        )
      }
    </Panel>
  );
}

/** `onChange` asks for the account again. */
function SecondFactor({ account, onChange }: { account: Account; onChange: () => void }) {
  const t = useTexts();
  const { session } = useApp();
  const [view, setView] = useState<View>({ at: 'state' });

  switch (view.at) {
    case 'proof':
      return (
        <ProofForm
          account={account}
          action={view.action}
          onCancel={() => setView({ at: 'state' })}
          onBegun={(begun) => setView({ at: 'enrolment', begun })}
          onCodes={(codes) => setView({ at: 'codes', codes })}
          onOff={() => {
            onChange();
            setView({ at: 'state', done: 'panel.isOff' });
          }}
        />
      );
    case 'enrolment':
      return (
        <Enrolment
          begun={view.begun}
          confirm={(api, code) => api.confirm(code)}
          onCancel={() => setView({ at: 'state' })}
          onEnrolled={({ token, recovery_codes }) => {
            session.renew(token);
            onChange();
            setView({ at: 'codes', codes: recovery_codes, done: 'panel.done' });
          }}
        />
      );
    case 'codes':
      return (
        <RecoveryCodes
          codes={view.codes}
          email={account.email}
          onSaved={() => {
            onChange();
            setView({ at: 'state', done: view.done });
          }}
        />
      );
  }

  const { mfa_enabled: on, mfa_required: required, recovery_codes_left: left } = account;
  const choose = (action: Action) => setView({ at: 'proof', action });
  return (
    <div className="space-y-4">
      {view.done && <Notice tone="success">{t(view.done)}</Notice>}
      <div className="flex flex-wrap items-center gap-2.5">
        <Badge tone={on ? 'good' : 'none'}>{t(on ? 'panel.on' : 'panel.off')}</Badge>
        <p className="text-sm text-muted">{t(on ? 'panel.onLead' : 'panel.offLead')}</p>
      </div>
      {on && required && <p className="text-sm text-muted">{t('panel.required')}</p>}
      {on && left < FEW && <Notice tone="warning">{t('panel.fewLeft', { count: left })}</Notice>}
      {on && left >= FEW && <p className="text-sm text-muted">{t('panel.left', { count: left })}</p>}
      <div className="flex flex-wrap gap-2">
        {!on && (
          <Button look="primary" onClick={() => choose('enrol')}>
            {t('panel.setUp')}
          </Button>
        )}
        {on && <Button onClick={() => choose('enrol')}>{t('panel.replace')}</Button>}
        {on && <Button onClick={() => choose('codes')}>{t('panel.newCodes')}</Button>}
        {on && !required && (
          <Button look="danger" onClick={() => choose('off')}>
            {t('panel.switchOff')}
          </Button>
        )}
      </div>
    </div>
  );
}

interface ProofFormProps {
  account: Account;
  action: Action;
  onCancel: () => void;
  onBegun: (begun: Begun) => void;
  onCodes: (codes: string[]) => void;
  onOff: () => void;
}

const LEADS: Partial<Record<Action, Key>> = { codes: 'proof.codesLead', off: 'proof.offLead' };

function ProofForm({ account, action, onCancel, onBegun, onCodes, onOff }: ProofFormProps) {
  const i18n = useI18n();
  const t = useTexts();
  const form = useRef<HTMLFormElement>(null);
  const [problems, setProblems] = useState<{ password?: Key; code?: Key }>({});
  const request = useRequest(
    async (api, proof: Proof) => {
      if (action === 'enrol') onBegun(await api.begin(proof));
      else if (action === 'codes') onCodes(await api.newRecoveryCodes(proof));
      else {
        await api.disable(proof);
        onOff();
      }
    },
    {
      onError: (error) => {
        const field = error instanceof ApiError ? error.field : null;
        if (field === 'password') setProblems({ password: 'proof.passwordWrong' });
        if (field === 'code') setProblems({ code: 'step.wrong' });
        if (field !== null) focusField(form.current, field);
      },
    },
  );
  const needsPassword = account.has_password;
  const needsCode = account.mfa_enabled;

  function submit(event: SyntheticEvent<HTMLFormElement>) {
    event.preventDefault();
    if (request.isPending) return;
    const data = new FormData(event.currentTarget);
    const [password, code] = [fieldText(data, 'password'), fieldText(data, 'code').trim()];
    const found = {
      ...(needsPassword && password === '' && { password: 'proof.passwordMissing' as const }),
      ...(needsCode && code === '' && { code: 'step.missing' as const }),
    };
    setProblems(found);
    request.reset();
    if (found.password) focusField(form.current, 'password');
    else if (found.code) focusField(form.current, 'code');
    else request.mutate({ ...(needsPassword && { password }), ...(needsCode && { code }) });
  }

  const lead = LEADS[action];
  const shown = problems.password !== undefined || problems.code !== undefined;
  return (
    <form ref={form} noValidate onSubmit={submit} className="max-w-sm space-y-4">
      {request.isError && !shown && <Notice tone="error">{errorText(request.error, i18n)}</Notice>}
      {lead && <p className="text-sm text-muted">{t(lead)}</p>}
      <input type="text" name="username" autoComplete="username" value={account.email} readOnly hidden />
      {needsPassword && (
        <PasswordField
          label={t('proof.password')}
          name="password"
          autoComplete="current-password"
          required
          error={problems.password ? t(problems.password) : null}
        />
      )}
      {needsCode && (
        <Field
          label={t('proof.code')}
          name="code"
          autoComplete="one-time-code"
          autoCapitalize="off"
          spellCheck={false}
          required
          error={problems.code ? t(problems.code) : null}
          className="font-mono"
        />
      )}
      <div className="flex flex-wrap gap-2">
        <Button type="submit" look={action === 'off' ? 'danger' : 'primary'} busy={request.isPending}>
          {t(action === 'off' ? 'proof.off' : 'proof.go')}
        </Button>
        <Button onClick={onCancel}>{t('enrol.cancel')}</Button>
      </div>
    </form>
  );
}
