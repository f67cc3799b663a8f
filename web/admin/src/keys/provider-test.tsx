// A test of a provider: what is sent, and what really came back.
import { unwrap } from '@tidepool/shared/api/envelope';
import { Field } from '@tidepool/shared/ui/field';
import { fieldText } from '@tidepool/shared/ui/form';
import { Notice } from '@tidepool/shared/ui/notice';
import { SelectField } from '@tidepool/shared/ui/select';
import { useState } from 'react';
import { api } from '../api';
import { FormDialog } from '../parts/form-dialog';
import { oneOf, type Provider } from '../records';
import { useProviderText } from './provider-texts';

interface ProviderTestProps {
  provider: Provider;
  onClose: () => void;
  onDone: () => void;
}

export function ProviderTest({ provider, onClose, onDone }: ProviderTestProps) {
  const { t } = useProviderText();
  const send = (data: FormData) => {
    const key_id = fieldText(data, 'key_id');
    const body = {
      model: fieldText(data, 'model').trim() || null,
      protocol: oneOf(fieldText(data, 'protocol'), provider.protocols) ?? null,
      key_id: key_id || null,
    };
    return unwrap(api.POST('/providers/{id}/test', { params: { path: { id: provider.id } }, body }));
  };
  const [answer, setAnswer] = useState<Awaited<ReturnType<typeof send>> | null>(null);
  return (
    <FormDialog
      title={t('providers.testTitle', { name: provider.name })}
      lead={t('providers.testText')}
      submit={t('providers.testRun')}
      width="wide"
      onClose={onClose}
      staysOpen={() => true}
      onDone={(answer) => {
        setAnswer(answer);
        onDone();
      }}
      send={send}
    >
      {(refused) => (
        <>
          <Field
            label={t('providers.testModel')}
            name="model"
            hint={t('providers.testModelHint')}
            autoComplete="off"
            error={refused('model')}
          />
          <SelectField
            label={t('providers.protocol')}
            name="protocol"
            choices={provider.protocols.map((one) => ({ value: one, label: one }))}
          />
          {provider.keys.length > 1 && (
            <SelectField
              label={t('providers.key')}
              name="key_id"
              choices={provider.keys.map(({ id, hint }) => ({ value: id, label: hint }))}
            />
          )}
          {answer && <Answered answer={answer} />}
        </>
      )}
    </FormDialog>
  );
}

interface Answer {
  ok: boolean;
  status?: number | null;
  duration_ms: number;
  body: string;
  failure?: keyof typeof FAILURES | null;
  error: string;
}

const FAILURES = {
  key_refused: 'providers.failure.key_refused',
  account_spent: 'providers.failure.account_spent',
  rate_limited: 'providers.failure.rate_limited',
  unreachable: 'providers.failure.unreachable',
  late: 'providers.failure.late',
  failed: 'providers.failure.failed',
} as const;

function Answered({ answer }: { answer: Answer }) {
  const { t, number } = useProviderText();
  const ms = number(answer.duration_ms);
  const why = answer.error || (answer.failure ? t(FAILURES[answer.failure]) : '');
  const status = answer.status == null ? null : String(answer.status);
  return (
    <div className="space-y-2" role="status">
      <Notice tone={answer.ok ? 'success' : 'error'}>
        {status === null
          ? t('providers.testNone', { ms, why })
          : why
            ? t('providers.testBad', { status, ms, why })
            : t('providers.testOk', { status, ms })}
      </Notice>
      {answer.body && (
        <>
          <h3 className="text-sm font-medium">{t('providers.testBody')}</h3>
          <pre className="max-h-64 overflow-auto rounded-lg bg-sunken p-3 font-mono text-[0.8125rem] break-all whitespace-pre-wrap">
            {answer.body}
          </pre>
        </>
      )}
    </div>
  );
}
