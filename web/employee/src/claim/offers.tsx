// What can be claimed: idle instances, and professions with how many of them are ready.
import { useQuery } from '@tanstack/react-query';
import { ApiError, unwrap } from '@tidepool/shared/api/envelope';
import { errorText } from '@tidepool/shared/api/error-text';
import { Badge, StatusDot } from '@tidepool/shared/ui/badge';
import { Button } from '@tidepool/shared/ui/button';
import { Notice } from '@tidepool/shared/ui/notice';
import { Panel } from '@tidepool/shared/ui/panel';
import { EmptyState } from '@tidepool/shared/ui/states';
import { BriefcaseBusiness, Sparkles } from 'lucide-react';
import { api } from '../api';
import { HEALTH_TEXTS, HEALTH_TONES } from '../health';
import { useText } from '../messages';
import { PROFESSIONS, useClaim } from './use-claim';

const AVAILABLE = ['instances', 'available'];

export function useProfessions() {
  return useQuery({
    queryKey: PROFESSIONS,
    queryFn: async () =>
      (await unwrap(api.GET('/me/professions', { params: { query: { page_size: 200 } } }))).list,
  });
}

export type Profession = NonNullable<ReturnType<typeof useProfessions>['data']>[number];

function ClaimFailure({ error }: { error: Error | null }) {
  const i18n = useText();
  if (error === null) return null;
  const code = error instanceof ApiError ? error.code : '';
  const text =
    code === '4091'
      ? i18n.t('claim.already')
      : code === '4092'
        ? i18n.t('claim.taken')
        : errorText(error, i18n);
  return (
    <div className="mb-4">
      <Notice tone="error">{text}</Notice>
    </div>
  );
}

export function IdleInstances() {
  const { t } = useText();
  const available = useQuery({
    queryKey: AVAILABLE,
    queryFn: async () => (await unwrap(api.GET('/instances/available'))).list,
  });
  const claim = useClaim((id: string) =>
    unwrap(api.POST('/me/instances/claim', { body: { instance_id: id } })),
  );
  return (
    <Panel
      title={t('claim.idle')}
      icon={<Sparkles aria-hidden="true" />}
      query={available}
      empty={{
        when: (list) => list.length === 0,
        show: <EmptyState title={t('claim.noneIdle')}>{t('claim.noneIdleHint')}</EmptyState>,
      }}
    >
      {(list) => (
        <>
          <ClaimFailure error={claim.error} />
          <ul className="divide-y divide-line">
            {list.map((one) => (
              <li
                key={one.id}
                className="flex flex-wrap items-center gap-x-4 gap-y-2 py-3 first:pt-0 last:pb-0"
              >
                <StatusDot tone={HEALTH_TONES[one.status]} />
                <div className="min-w-0 flex-1 basis-40">
                  <p className="font-medium">{one.name}</p>
                  <p className="text-sm text-muted">
                    {one.model}
                    <br />
                    {one.server_name} · {t(HEALTH_TEXTS[one.status])}
                  </p>
                </div>
                <Button
                  size="small"
                  aria-label={t('claim.takeNamed', { name: one.name })}
                  busy={claim.isPending && claim.variables === one.id}
                  onClick={() => !claim.isPending && claim.mutate(one.id)}
                >
                  {t('claim.take')}
                </Button>
              </li>
            ))}
          </ul>
        </>
      )}
    </Panel>
  );
}

export function Professions({ heading }: { heading: string }) {
  const { t } = useText();
  const professions = useProfessions();
  const claim = useClaim((id: string) =>
    unwrap(api.POST('/me/professions/{id}/claim', { params: { path: { id } } })),
  );
  return (
    <Panel
      title={heading}
      icon={<BriefcaseBusiness aria-hidden="true" />}
      query={professions}
      skeletonLines={6}
      empty={{
        when: (list) => list.length === 0,
        show: <EmptyState title={t('professions.none')}>{t('professions.noneHint')}</EmptyState>,
      }}
    >
      {(list) => (
        <>
          <ClaimFailure error={claim.error} />
          <ul className="grid gap-3 sm:grid-cols-2">
            {list.map((one) => (
              <ProfessionCard
                key={one.id}
                profession={one}
                busy={claim.isPending && claim.variables === one.id}
                onClaim={() => !claim.isPending && claim.mutate(one.id)}
              />
            ))}
          </ul>
        </>
      )}
    </Panel>
  );
}

interface ProfessionCardProps {
  profession: Profession;
  busy: boolean;
  onClaim: () => void;
}

function ProfessionCard({ profession, busy, onClaim }: ProfessionCardProps) {
  const { t } = useText();
  const { icon, name, tagline, description, stock_ready: stock, claimed } = profession;
  return (
    <li className="flex flex-col gap-3 rounded-xl border border-line p-4">
      <div className="flex gap-3">
        <span
          aria-hidden="true"
          className="flex size-11 shrink-0 items-center justify-center rounded-xl bg-sunken text-2xl"
        >
          {icon}
        </span>
        <div className="min-w-0">
          <h3 className="font-semibold">{name}</h3>
          <p className="text-sm text-muted">{tagline}</p>
        </div>
      </div>
      {description && <p className="text-sm">{description}</p>}
      <div className="mt-auto flex items-center justify-between gap-3">
        {claimed ? (
          <Badge tone="good">{t('professions.yours')}</Badge>
        ) : stock > 0 ? (
          <span className="text-sm text-muted">{t('professions.stock', { count: stock })}</span>
        ) : (
          <span className="text-sm text-muted">{t('professions.noStock')}</span>
        )}
        {!claimed && (
          <Button
            size="small"
            look={stock > 0 ? 'primary' : 'secondary'}
            disabled={stock === 0}
            busy={busy}
            aria-label={t('professions.claimNamed', { name })}
            onClick={onClaim}
          >
            {t('professions.claim')}
          </Button>
        )}
      </div>
    </li>
  );
}
