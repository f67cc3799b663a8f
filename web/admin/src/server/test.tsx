// Tries a server step by step and says for each what was found.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { errorText } from '@tidepool/shared/api/error-text';
import { Button } from '@tidepool/shared/ui/button';
import { Notice } from '@tidepool/shared/ui/notice';
import { Card } from '@tidepool/shared/ui/panel';
import { CircleAlert, CircleCheck, CircleDashed, PlugZap } from 'lucide-react';
import { api } from '../api';
import { useText, type Key } from '../messages';
import type { TestStep } from '../records';

const STEPS = [
  'address',
  'host_key',
  'login',
  'sudo',
  'systemd',
  'cell',
  'docker',
  'node',
  'openclaw',
  'free_memory',
  'gateway',
];

export function ConnectionTest({ id }: { id: string }) {
  const i18n = useText();
  const { t } = i18n;
  const client = useQueryClient();
  const test = useMutation({
    mutationFn: () => unwrap(api.POST('/servers/{id}/test', { params: { path: { id } } })),
    onSuccess: () => client.invalidateQueries({ queryKey: ['servers'] }),
  });
  return (
    <Card
      title={t('test.title')}
      icon={<PlugZap aria-hidden="true" />}
      action={
        <Button size="small" busy={test.isPending} onClick={() => test.mutate()}>
          {t(test.isIdle ? 'test.run' : 'test.again')}
        </Button>
      }
    >
      <div aria-live="polite" className="space-y-3">
        {test.isIdle && <p className="text-sm text-muted">{t('test.lead')}</p>}
        {test.isPending && <p className="text-sm text-muted">{t('test.running')}</p>}
        {test.isError && <Notice tone="error">{errorText(test.error, i18n)}</Notice>}
        {test.data && (
          <>
            <Notice tone={test.data.ok ? 'success' : 'error'}>
              {t(test.data.ok ? 'test.ok' : 'test.failed')}
            </Notice>
            <ol className="space-y-2">
              {test.data.steps.map((step) => (
                <Step key={step.step} step={step} />
              ))}
            </ol>
          </>
        )}
      </div>
    </Card>
  );
}

function Step({ step }: { step: TestStep }) {
  const { t } = useText();
  const skipped = !step.ok && step.detail === 'not tried';
  const Icon = step.ok ? CircleCheck : skipped ? CircleDashed : CircleAlert;
  const colour = step.ok ? 'text-success' : skipped ? 'text-muted' : 'text-danger';
  return (
    <li className="flex gap-2.5 text-sm">
      <Icon className={`mt-0.5 size-4 shrink-0 ${colour}`} aria-hidden="true" />
      <span className="min-w-0 flex-1">
        <span className="font-medium">
          {STEPS.includes(step.step) ? t(`test.${step.step}` as Key) : step.step}
        </span>
        <span className="sr-only">
          {' '}
          {t(step.ok ? 'outcome.done' : skipped ? 'test.skipped' : 'outcome.failed')}
        </span>
        {step.detail && <span className="block text-muted wrap-anywhere">{step.detail}</span>}
      </span>
      {!skipped && <span className="text-xs text-muted tabular-nums">{step.ms} ms</span>}
    </li>
  );
}
