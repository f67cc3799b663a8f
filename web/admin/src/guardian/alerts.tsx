// Alerts that were raised, and the rules that raise them; rules are super administrators' to change.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { errorText } from '@tidepool/shared/api/error-text';
import { RelativeTime } from '@tidepool/shared/i18n/time';
import { Status } from '@tidepool/shared/ui/badge';
import { Button } from '@tidepool/shared/ui/button';
import { Field } from '@tidepool/shared/ui/field';
import { fieldText } from '@tidepool/shared/ui/form';
import { Card } from '@tidepool/shared/ui/panel';
import { EmptyState } from '@tidepool/shared/ui/states';
import { CheckField } from '@tidepool/shared/ui/text-area';
import { toast } from '@tidepool/shared/ui/toast';
import { useState } from 'react';
import { useIsSuper } from '../me';
import { useText, type Key } from '../messages';
import { FormDialog } from '../parts/form-dialog';
import { Maybe } from '../parts/not-available';
import { call, type Alert, type AlertRule, type Listing } from '../pending-api';

const RULES = ['key_balance_low', 'budget_near_limit', 'instances_unhealthy', 'task_dead', 'gateway_down'];

export function Alerts() {
  const i18n = useText();
  const { t } = i18n;
  const client = useQueryClient();
  const isSuper = useIsSuper();
  const [editing, setEditing] = useState<AlertRule | null>(null);
  const nameOf = (rule: string) => (RULES.includes(rule) ? t(`alerts.${rule}` as Key) : rule);
  const alerts = useQuery({
    queryKey: ['alerts', 'raised'],
    queryFn: () => call<Listing<Alert>>('GET', '/alerts'),
    retry: false,
  });
  const rules = useQuery({
    queryKey: ['alerts', 'rules'],
    queryFn: () => call<Listing<AlertRule>>('GET', '/alerts/rules'),
    retry: false,
  });
  const changed = () => void client.invalidateQueries({ queryKey: ['alerts'] });
  const ack = useMutation({
    mutationFn: (alert: Alert) => call<unknown>('POST', `/alerts/${encodeURIComponent(alert.id)}/ack`, {}),
    onSuccess: changed,
    onError: (error) => toast('error', errorText(error, i18n)),
  });
  return (
    <div className="grid items-start gap-4 xl:grid-cols-2">
      <Card title={t('alerts.raised')}>
        <Maybe query={alerts}>
          {({ list }) =>
            list.length === 0 ? (
              <EmptyState title={t('alerts.none')}>{t('alerts.noneText')}</EmptyState>
            ) : (
              <ul className="divide-y divide-line">
                {list.map((alert) => (
                  <li key={alert.id} className="flex flex-wrap items-center gap-3 py-2.5 text-sm">
                    <span className="min-w-0 flex-1 basis-60">
                      <Status tone={alert.resolved_at ? 'good' : alert.acked_at ? 'warn' : 'bad'}>
                        {nameOf(alert.rule)}
                      </Status>
                      <span className="block">{alert.message}</span>
                    </span>
                    <span className="text-muted">
                      <RelativeTime at={alert.created_at} />
                    </span>
                    {!alert.acked_at && (
                      <Button size="small" onClick={() => ack.mutate(alert)}>
                        {t('alerts.ack')}
                      </Button>
                    )}
                  </li>
                ))}
              </ul>
            )
          }
        </Maybe>
      </Card>
      <Card title={t('alerts.rules')}>
        <Maybe query={rules}>
          {({ list }) => (
            <ul className="divide-y divide-line">
              {list.map((rule) => (
                <li key={rule.id} className="flex flex-wrap items-center gap-3 py-2.5 text-sm">
                  <span className="min-w-0 flex-1 basis-48">
                    <Status tone={rule.enabled ? 'good' : 'none'}>{nameOf(rule.id)}</Status>
                    {rule.channel && <span className="block break-all text-muted">{rule.channel}</span>}
                  </span>
                  {rule.threshold != null && (
                    <span className="text-muted tabular-nums">{rule.threshold}</span>
                  )}
                  {isSuper && (
                    <Button size="small" onClick={() => setEditing(rule)}>
                      {t('instances.edit')}
                    </Button>
                  )}
                </li>
              ))}
            </ul>
          )}
        </Maybe>
      </Card>
      {editing && (
        <FormDialog
          title={nameOf(editing.id)}
          submit={t('dialog.save')}
          onClose={() => setEditing(null)}
          onDone={changed}
          send={(data) => {
            const threshold = fieldText(data, 'threshold').trim();
            return call<unknown>('PUT', `/alerts/rules/${encodeURIComponent(editing.id)}`, {
              enabled: data.has('enabled'),
              threshold: threshold === '' ? null : Number(threshold),
              channel: fieldText(data, 'channel').trim() || null,
            });
          }}
        >
          {(refused) => (
            <>
              <CheckField label={t('alerts.enabled')} name="enabled" defaultChecked={editing.enabled} />
              <Field
                label={t('alerts.threshold')}
                name="threshold"
                inputMode="decimal"
                defaultValue={editing.threshold ?? ''}
                error={refused('threshold')}
              />
              <Field
                label={t('alerts.channel')}
                name="channel"
                defaultValue={editing.channel ?? ''}
                hint={t('alerts.channelHint')}
                error={refused('channel')}
              />
            </>
          )}
        </FormDialog>
      )}
    </div>
  );
}
