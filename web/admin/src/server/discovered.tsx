// What a server has already: gateways that tidepool did not make, with the way to adopt them. The server is asked when a person
// wants it: every look reads the configurations there.
import { useQuery } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { RelativeTime } from '@tidepool/shared/i18n/time';
import { Badge, Status } from '@tidepool/shared/ui/badge';
import { Button } from '@tidepool/shared/ui/button';
import { Notice } from '@tidepool/shared/ui/notice';
import { Card } from '@tidepool/shared/ui/panel';
import { EmptyState } from '@tidepool/shared/ui/states';
import { Search } from 'lucide-react';
import { lazy, Suspense, useState } from 'react';
import { Link } from 'wouter';
import { api } from '../api';
import { QueryState } from '../parts/query-state';
import type { DiscoveredGateway } from '../records';
import { useAdoptText, type Translate } from './adopt-texts';
import { canBeAdopted, obstacleText, shownName } from './discovered-text';

// Loaded when it is opened.
const AdoptDialog = lazy(async () => ({ default: (await import('./adopt')).AdoptDialog }));

export function Discovered({ id }: { id: string }) {
  const { t } = useAdoptText();
  const [isAsked, setAsked] = useState(false);
  const found = useQuery({
    queryKey: ['servers', 'discover', id],
    queryFn: () => unwrap(api.GET('/servers/{id}/discover', { params: { path: { id } } })),
    enabled: isAsked,
    retry: false,
    staleTime: Infinity,
  });
  const look = () => (isAsked ? void found.refetch() : setAsked(true));
  return (
    <Card
      title={t('adopt.title')}
      action={
        <Button busy={found.isFetching} onClick={look}>
          {!found.isFetching && <Search className="size-4" aria-hidden="true" />}
          {t(found.data ? 'adopt.again' : 'adopt.look')}
        </Button>
      }
    >
      {isAsked ? (
        <QueryState query={found}>
          {({ list, complete }) => (
            <>
              {!complete && <Notice tone="warning">{t('adopt.incomplete')}</Notice>}
              <List server={id} list={list} />
            </>
          )}
        </QueryState>
      ) : (
        <p className="text-sm text-muted">{t('adopt.lead')}</p>
      )}
    </Card>
  );
}

function List({ server, list }: { server: string; list: readonly DiscoveredGateway[] }) {
  const { t, number } = useAdoptText();
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [isAdopting, setAdopting] = useState(false);
  const free = list.filter(canBeAdopted);
  const selected = free.filter(({ key }) => chosen.has(key));
  const toggle = (key: string) =>
    setChosen((before) => {
      const after = new Set(before);
      if (!after.delete(key)) after.add(key);
      return after;
    });
  if (list.length === 0) return <EmptyState title={t('adopt.none')}>{t('adopt.noneText')}</EmptyState>;
  return (
    <>
      {free.length > 0 && (
        <div className="flex flex-wrap items-center justify-between gap-2 border-b border-line pb-2">
          <label className="flex min-h-9 items-center gap-2 text-sm">
            <input
              type="checkbox"
              checked={selected.length === free.length}
              onChange={() =>
                setChosen(new Set(selected.length === free.length ? [] : free.map(({ key }) => key)))
              }
            />
            {t('adopt.all')}
          </label>
          <Button look="primary" disabled={selected.length === 0} onClick={() => setAdopting(true)}>
            {t('adopt.open', { count: number(selected.length) })}
          </Button>
        </div>
      )}
      <ul className="divide-y divide-line">
        {list.map((one) => (
          <li key={one.key} className="flex items-start gap-3 py-2 text-sm">
            {canBeAdopted(one) ? (
              <input
                type="checkbox"
                className="mt-1"
                aria-label={t('adopt.select', { name: shownName(one) })}
                checked={chosen.has(one.key)}
                onChange={() => toggle(one.key)}
              />
            ) : (
              <span className="w-3.5" aria-hidden="true" />
            )}
            <Facts gateway={one} t={t} />
            <Status tone={one.running ? 'good' : 'none'}>
              {t(one.running ? 'adopt.running' : 'adopt.stopped')}
            </Status>
          </li>
        ))}
      </ul>
      {isAdopting && (
        <Suspense fallback={null}>
          <AdoptDialog server={server} gateways={selected} onClose={() => setAdopting(false)} />
        </Suspense>
      )}
    </>
  );
}

function Facts({ gateway, t }: { gateway: DiscoveredGateway; t: Translate }) {
  const { instance_id: known, port, version, model, channels, last_session_at: session } = gateway;
  const facts = [
    port != null && t('adopt.port', { port: String(port) }),
    version != null && `OpenClaw ${version}`,
    model,
    channels.length > 0 && channels.join(', '),
  ].filter((fact) => typeof fact === 'string');
  return (
    <span className="min-w-0 flex-1">
      <span className="font-medium break-all">{shownName(gateway)}</span>{' '}
      <span className="text-muted">
        {t(`adopt.runner.${gateway.runner}`)} {t('adopt.of', { user: gateway.user })}
      </span>
      <span className="block break-words text-muted">
        {facts.join(' · ')}
        {session != null && (
          <>
            {facts.length > 0 && ' · '}
            {t('adopt.session', { time: '' }).trim()} <RelativeTime at={session} />
          </>
        )}
      </span>
      {gateway.open_to_others && <Badge tone="warn">{t('adopt.openToOthers')}</Badge>}
      {known != null ? (
        <Link href={`/instances?open=${encodeURIComponent(known)}`} className="block underline">
          {t('adopt.known', { id: known })}
        </Link>
      ) : (
        gateway.obstacle != null && (
          <span className="block text-muted">{obstacleText(gateway.obstacle, t)}</span>
        )
      )}
    </span>
  );
}
