// How an instance is, where it comes from, and, when it was claimed, the way to give it back.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { RelativeTime } from '@tidepool/shared/i18n/time';
import { Status } from '@tidepool/shared/ui/badge';
import { Button, buttonClass } from '@tidepool/shared/ui/button';
import { Confirm } from '@tidepool/shared/ui/confirm';
import { Card, Facts } from '@tidepool/shared/ui/panel';
import { toast } from '@tidepool/shared/ui/toast';
import { HeartPulse } from 'lucide-react';
import { useState } from 'react';
import { Link } from 'wouter';
import { api } from '../api';
import { GetAnother } from '../claim/get-another';
import { HEALTH_TEXTS, HEALTH_TONES } from '../health';
import { INSTANCES, type Instance } from '../instances-query';
import { useText, type Key } from '../messages';
import { compact, usd } from '../money';
import { PROFILE } from '../profile-query';

const MEANINGS: Record<Instance['status'], Key> = {
  healthy: 'health.healthyText',
  unhealthy: 'health.unhealthyText',
  key_invalid: 'health.keyInvalidText',
  rate_limited: 'health.rateLimitedText',
  unknown: 'health.unknownText',
};

export function HealthCard({ instance }: { instance: Instance }) {
  const { t, locale, number } = useText();
  const [asking, setAsking] = useState(false);
  const queries = useQueryClient();
  const giveBack = useMutation({
    mutationFn: () =>
      unwrap(api.DELETE('/me/instances/{id}/claim', { params: { path: { id: instance.id } } })),
    onSuccess: () => {
      toast('success', t('assistant.givenBack', { name: instance.name }));
      for (const queryKey of [INSTANCES, PROFILE, ['professions']])
        void queries.invalidateQueries({ queryKey });
    },
  });
  const { today } = instance;
  return (
    <Card title={instance.name} icon={<HeartPulse aria-hidden="true" />}>
      <p className="text-lg font-semibold">
        <Status tone={HEALTH_TONES[instance.status]}>{t(HEALTH_TEXTS[instance.status])}</Status>
      </p>
      <p className="mt-1 mb-4 text-sm text-muted">{t(MEANINGS[instance.status])}</p>
      <Facts
        rows={[
          {
            name: t('assistant.checked'),
            value: instance.last_health_at ? (
              <RelativeTime at={instance.last_health_at} />
            ) : (
              <span className="text-muted">{t('assistant.neverChecked')}</span>
            ),
          },
          { name: t('log.model'), value: instance.model },
          { name: t('assistant.origin'), value: instance.profession_name ?? t(`origin.${instance.origin}`) },
          {
            name: t('usage.today'),
            value: t('column.today', {
              requests: number(today.requests),
              tokens: compact(today.total_tokens, locale),
              cost: usd(today.cost_usd, locale),
            }),
          },
          { name: t('assistant.id'), value: <code className="font-mono text-sm">{instance.id}</code> },
        ]}
      />
      {instance.setup?.status === 'dead' && (
        <div className="mt-5 space-y-3">
          <p className="font-medium">{t('setup.failed', { name: instance.name })}</p>
          <p className="text-sm text-muted">{t('setup.failedLead')}</p>
          <GetAnother instance={instance} />
        </div>
      )}
      <div className="mt-5 flex flex-wrap gap-2">
        <Link href={`/?instance=${encodeURIComponent(instance.id)}`} className={buttonClass('primary')}>
          {t('assistant.chat')}
        </Link>
        {instance.origin !== 'assigned' && (
          <Button look="danger" onClick={() => setAsking(true)}>
            {t('assistant.giveBack')}
          </Button>
        )}
      </div>
      {asking && (
        <Confirm
          title={t('assistant.giveBackTitle', { name: instance.name })}
          name={instance.name}
          confirm={t('assistant.giveBack')}
          run={() => giveBack.mutateAsync()}
          onClose={() => setAsking(false)}
        >
          {t('assistant.giveBackText')}
        </Confirm>
      )}
    </Card>
  );
}
