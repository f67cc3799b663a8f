// What a server has already: gateways that tidepool did not make, with the way to adopt them. The server is asked when a person
// wants it: every look reads the configurations there.
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { RelativeTime } from '@tidepool/shared/i18n/time';
import { lazyPart } from '@tidepool/shared/lazy-part';
import { Badge, Status } from '@tidepool/shared/ui/badge';
import { Button } from '@tidepool/shared/ui/button';
import { Field } from '@tidepool/shared/ui/field';
import { Notice } from '@tidepool/shared/ui/notice';
import { Card } from '@tidepool/shared/ui/panel';
import { EmptyState } from '@tidepool/shared/ui/states';
import { Search } from 'lucide-react';
import { Suspense, useId, useState } from 'react';
import { Link } from 'wouter';
import { api } from '../api';
import { QueryState } from '../parts/query-state';
import type { DiscoveredGateway } from '../records';
import { useAdoptText, type Translate } from './adopt-texts';
import { canBeAdopted, cannotBeAdopted, obstacleText, shownName } from './discovered-text';

// Loaded when it is opened.
const AdoptDialog = lazyPart(async () => ({ default: (await import('./adopt')).AdoptDialog }));

/** Where the look finds the e-mails of employees; empty where it need not look. */
interface EmailSource {
  file: string;
  field: string;
}

const NO_SOURCE: EmailSource = { file: '', field: '' };

export function Discovered({ id }: { id: string }) {
  const { t } = useAdoptText();
  const form = useId();
  const [typed, setTyped] = useState(NO_SOURCE);
  /** What the last look was asked for; null before the first. */
  const [asked, setAsked] = useState<EmailSource | null>(null);
  const found = useQuery({
    queryKey: ['servers', 'discover', id, asked],
    queryFn: () =>
      unwrap(
        api.GET('/servers/{id}/discover', {
          params: {
            path: { id },
            query: { email_file: asked?.file || undefined, email_field: asked?.field || undefined },
          },
        }),
      ),
    enabled: asked !== null,
    // What was found stays in sight while the server is asked for something else.
    placeholderData: keepPreviousData,
    retry: false,
    staleTime: Infinity,
  });
  const look = () => {
    const next = { file: typed.file.trim(), field: typed.field.trim() };
    if (asked?.file === next.file && asked.field === next.field) void found.refetch();
    else setAsked(next);
  };
  return (
    <Card
      title={t('adopt.title')}
      action={
        <Button type="submit" form={form} busy={found.isFetching}>
          {!found.isFetching && <Search className="size-4" aria-hidden="true" />}
          {t(found.data ? 'adopt.again' : 'adopt.look')}
        </Button>
      }
    >
      {asked === null && <p className="mb-2 text-sm text-muted">{t('adopt.lead')}</p>}
      <form
        id={form}
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          if (!found.isFetching) look();
        }}
      >
        <EmailSourceFields value={typed} onChange={setTyped} />
      </form>
      {asked !== null && (
        <div className="mt-4">
          <QueryState query={found}>
            {({ list, complete }) => (
              <>
                {!complete && <Notice tone="warning">{t('adopt.incomplete')}</Notice>}
                <List server={id} list={list} />
              </>
            )}
          </QueryState>
        </div>
      )}
    </Card>
  );
}

interface EmailSourceFieldsProps {
  value: EmailSource;
  onChange: (value: EmailSource) => void;
}

/** Folded: most servers have no such file or field. */
function EmailSourceFields({ value, onChange }: EmailSourceFieldsProps) {
  const { t } = useAdoptText();
  return (
    <details>
      <summary className="cursor-pointer rounded text-sm text-accent">{t('adopt.source')}</summary>
      <p className="my-2 text-sm text-muted">{t('adopt.sourceText')}</p>
      <div className="grid gap-3 sm:grid-cols-2">
        <Field
          label={t('adopt.emailFile')}
          hint={t('adopt.emailFileHint')}
          autoCapitalize="off"
          autoComplete="off"
          spellCheck={false}
          value={value.file}
          onChange={(event) => onChange({ ...value, file: event.target.value })}
        />
        <Field
          label={t('adopt.emailField')}
          hint={t('adopt.emailFieldHint')}
          autoCapitalize="off"
          autoComplete="off"
          spellCheck={false}
          value={value.field}
          onChange={(event) => onChange({ ...value, field: event.target.value })}
        />
      </div>
    </details>
  );
}

function List({ server, list }: { server: string; list: readonly DiscoveredGateway[] }) {
  const { t, number } = useAdoptText();
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [isAdopting, setAdopting] = useState(false);
  const free = list.filter(canBeAdopted);
  const left = list.filter(cannotBeAdopted);
  const known = list.length - free.length - left.length;
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
      <p role="status" className="mb-2 flex flex-wrap gap-x-2 text-sm">
        <span className="font-medium">
          {t('adopt.summary', { can: number(free.length), cannot: number(left.length) })}
        </span>
        {known > 0 && <span className="text-muted">{t('adopt.summaryKnown', { count: number(known) })}</span>}
      </p>
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
              <span className="w-3.25 shrink-0" aria-hidden="true" />
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
          <AdoptDialog server={server} gateways={selected} left={left} onClose={() => setAdopting(false)} />
        </Suspense>
      )}
    </>
  );
}

function Facts({ gateway, t }: { gateway: DiscoveredGateway; t: Translate }) {
  const { instance_id: known, port, version, model, channels, last_session_at: session, user } = gateway;
  const facts = [
    port != null && t('adopt.port', { port: String(port) }),
    version != null && `OpenClaw ${version}`,
    model,
    channels.length > 0 && channels.join(', '),
    gateway.email,
  ].filter((fact) => typeof fact === 'string');
  return (
    <span className="min-w-0 flex-1">
      <span className="font-medium break-all">{shownName(gateway)}</span>{' '}
      <span className="text-muted">
        {t(`adopt.runner.${gateway.runner}`)} {t('adopt.of', { user })}
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
      {(gateway.open_to_others || gateway.only_observed) && (
        <span className="flex flex-wrap gap-1.5 py-0.5">
          {gateway.open_to_others && <Badge tone="warn">{t('adopt.openToOthers')}</Badge>}
          {gateway.only_observed && <Badge tone="warn">{t('adopt.observedOnly')}</Badge>}
        </span>
      )}
      {gateway.only_observed && <span className="block text-muted">{t('adopt.observedOnlyText')}</span>}
      {gateway.lingers === false && <span className="block text-muted">{t('adopt.noLinger', { user })}</span>}
      {known != null ? (
        <Link href={`/instances?open=${encodeURIComponent(known)}`} className="block underline">
          {t('adopt.known', { id: known })}
        </Link>
      ) : (
        gateway.obstacle != null && (
          <span className="block text-warning">{obstacleText(gateway.obstacle, t)}</span>
        )
      )}
    </span>
  );
}
