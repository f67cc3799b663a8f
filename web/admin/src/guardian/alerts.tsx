// Alerts that were raised, and the rules that raise them; who may acknowledge and who may change rules is the role's.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { errorText } from '@tidepool/shared/api/error-text';
import { RelativeTime } from '@tidepool/shared/i18n/time';
import { Status } from '@tidepool/shared/ui/badge';
import { Button, buttonClass } from '@tidepool/shared/ui/button';
import { Confirm } from '@tidepool/shared/ui/confirm';
import { Dialog } from '@tidepool/shared/ui/dialog';
import { Field } from '@tidepool/shared/ui/field';
import { FieldProblems } from '@tidepool/shared/ui/field-problems';
import { fieldText } from '@tidepool/shared/ui/form';
import { Notice } from '@tidepool/shared/ui/notice';
import { readNumbers, type NumberRange } from '@tidepool/shared/ui/number';
import { NumberField } from '@tidepool/shared/ui/number-field';
import { Card } from '@tidepool/shared/ui/panel';
import { EmptyState } from '@tidepool/shared/ui/states';
import { CheckField } from '@tidepool/shared/ui/text-area';
import { toast } from '@tidepool/shared/ui/toast';
import { useState } from 'react';
import { Link } from 'wouter';
import { api } from '../api';
import { useMay } from '../me';
import { useText, type Key } from '../messages';
import { changedFields } from '../parts/changed-fields';
import { FormDialog } from '../parts/form-dialog';
import { QueryState } from '../parts/query-state';
import type { Alert, AlertRule } from '../records';
import { alertRuleText, alertText } from './alert-text';

/** Those with a threshold: what it counts, how it is written, and where it may lie. */
const THRESHOLDS: Readonly<Record<string, { hint: Key; written: Key; range: NumberRange }>> = {
  key_balance_low: {
    hint: 'alerts.dollars',
    written: 'alerts.below',
    range: { min: 0, max: 1_000_000_000, decimals: 2 },
  },
  budget_near_limit: {
    hint: 'alerts.percent',
    written: 'alerts.fromPercent',
    range: { min: 1, max: 100, decimals: 2 },
  },
  instances_unhealthy: {
    hint: 'alerts.count',
    written: 'alerts.fromCount',
    range: { min: 1, max: 1_000_000 },
  },
};

export function Alerts() {
  const i18n = useText();
  const { t, number } = i18n;
  const client = useQueryClient();
  const mayAck = useMay('alerts.acknowledge');
  const mayChange = useMay('alerts.rules');
  const [editing, setEditing] = useState<AlertRule | null>(null);
  const [removing, setRemoving] = useState<AlertRule | null>(null);
  const [secret, setSecret] = useState<string | null>(null);
  const alerts = useQuery({
    queryKey: ['alerts', 'raised'],
    queryFn: () => unwrap(api.GET('/alerts', { params: { query: { page: 1, page_size: 100 } } })),
    retry: false,
  });
  const rules = useQuery({
    queryKey: ['alerts', 'rules'],
    queryFn: () => unwrap(api.GET('/alerts/rules')),
    retry: false,
  });
  const unit = editing ? THRESHOLDS[editing.id] : undefined;
  const threshold = unit && { ...unit.range, none: t('alerts.default') };
  const changed = () => void client.invalidateQueries({ queryKey: ['alerts'] });
  const ack = useMutation({
    mutationFn: (alert: Alert) =>
      unwrap(api.POST('/alerts/{id}/ack', { params: { path: { id: alert.id } } })),
    onSuccess: changed,
    onError: (error) => toast('error', errorText(error, i18n)),
  });
  return (
    <div className="grid items-start gap-4 xl:grid-cols-2">
      <Card title={t('alerts.raised')}>
        <QueryState query={alerts}>
          {({ list }) =>
            list.length === 0 ? (
              <EmptyState title={t('alerts.none')}>{t('alerts.noneText')}</EmptyState>
            ) : (
              <ul className="divide-y divide-line">
                {list.map((alert) => (
                  <RaisedAlert
                    key={alert.id}
                    alert={alert}
                    onAck={mayAck ? () => ack.mutate(alert) : undefined}
                  />
                ))}
              </ul>
            )
          }
        </QueryState>
      </Card>
      <Card title={t('alerts.rules')}>
        <QueryState query={rules}>
          {({ list }) => (
            <ul className="divide-y divide-line">
              {list.map((rule) => (
                <li key={rule.id} className="flex flex-wrap items-center gap-3 py-2.5 text-sm">
                  <span className="min-w-0 flex-1 basis-48">
                    <Status wraps tone={rule.enabled ? 'good' : 'none'}>
                      {alertRuleText(rule.id, t)}
                    </Status>
                    {rule.threshold != null && (
                      <span className="block text-muted tabular-nums">
                        {t(THRESHOLDS[rule.id]?.written ?? 'alerts.fromCount', { n: number(rule.threshold) })}
                      </span>
                    )}
                    {rule.channel && <span className="block break-all text-muted">{rule.channel}</span>}
                  </span>
                  {mayChange && rule.channel && (
                    <Button size="small" look="danger" onClick={() => setRemoving(rule)}>
                      {t('alerts.removeChannel')}
                    </Button>
                  )}
                  {mayChange && (
                    <Button size="small" onClick={() => setEditing(rule)}>
                      {t('instances.edit')}
                    </Button>
                  )}
                </li>
              ))}
            </ul>
          )}
        </QueryState>
      </Card>
      {editing && (
        <FormDialog<AlertRule>
          title={alertRuleText(editing.id, t)}
          submit={t('dialog.save')}
          onClose={() => setEditing(null)}
          onDone={({ signing_secret }) => {
            changed();
            if (signing_secret) setSecret(signing_secret);
          }}
          send={(data) => {
            const channel = fieldText(data, 'channel').trim();
            // Its signing secret would be gone with it.
            if (editing.channel && channel === '')
              throw new FieldProblems({ channel: t('alerts.channelEmptied') });
            const body = {
              ...(threshold && readNumbers(data, { threshold }, i18n)),
              channel: channel || undefined,
            };
            return unwrap(
              api.PUT('/alerts/rules/{id}', {
                params: { path: { id: editing.id } },
                body: { enabled: data.has('enabled'), ...changedFields<typeof body>(editing, body) },
              }),
            );
          }}
        >
          {(refused) => (
            <>
              <CheckField label={t('alerts.enabled')} name="enabled" defaultChecked={editing.enabled} />
              {unit && threshold && (
                <NumberField
                  label={t('alerts.threshold')}
                  hint={t(unit.hint)}
                  name="threshold"
                  spec={threshold}
                  value={editing.threshold}
                  error={refused('threshold')}
                />
              )}
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
      {removing && (
        <Confirm
          title={t('alerts.removeChannelTitle', { name: alertRuleText(removing.id, t) })}
          confirm={t('alerts.removeChannel')}
          run={() =>
            unwrap(
              api.PUT('/alerts/rules/{id}', {
                params: { path: { id: removing.id } },
                body: { enabled: removing.enabled, channel: null },
              }),
            )
          }
          onDone={changed}
          onClose={() => setRemoving(null)}
        >
          <p className="break-all">{removing.channel}</p>
          <p>{t('alerts.removeChannelText')}</p>
        </Confirm>
      )}
      {secret !== null && (
        <Dialog open onClose={() => setSecret(null)} title={t('alerts.secret')}>
          <Notice tone="warning">{t('alerts.secretText')}</Notice>
          <code className="mt-3 block rounded-lg bg-sunken p-3 font-mono text-sm break-all">{secret}</code>
        </Dialog>
      )}
    </div>
  );
}

function RaisedAlert({ alert, onAck }: { alert: Alert; onAck?: () => void }) {
  const { t } = useText();
  const { title, message, instance, asks } = alertText(alert, t);
  return (
    <li className="flex flex-wrap items-center gap-3 py-2.5 text-sm">
      <span className="min-w-0 flex-1 basis-60">
        <Status wraps tone={alert.resolved_at ? 'good' : alert.acked_at ? 'warn' : 'bad'}>
          {title}
        </Status>
        <span className="block wrap-anywhere">{message}</span>
        <span className="block text-muted">
          {instance ? (
            <Link href={instance.href} className="rounded text-accent hover:underline">
              {instance.id}
            </Link>
          ) : (
            <code className="font-mono text-xs break-all">{alert.subject}</code>
          )}
          {alert.acked_by && ` · ${t('alerts.ackedBy', { who: alert.acked_by })}`}
        </span>
      </span>
      <span className="text-muted">
        <RelativeTime at={alert.created_at} />
      </span>
      {asks && instance && !alert.resolved_at && (
        <Link href={instance.href} className={buttonClass('primary', '', 'small')}>
          {t('alerts.look')}
        </Link>
      )}
      {!alert.acked_at && onAck && (
        <Button size="small" onClick={onAck}>
          {t('alerts.ack')}
        </Button>
      )}
    </li>
  );
}
