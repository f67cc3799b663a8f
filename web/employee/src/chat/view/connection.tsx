// The truth about the connection: a word in the header, and a bar with the broken hop and its remedy when there is one.
import { Button } from '@tidepool/shared/ui/button';
import { Notice } from '@tidepool/shared/ui/notice';
import { StatusDot, type Tone } from '@tidepool/shared/ui/badge';
import { useEffect, useState } from 'react';
import { useText, type Key } from '../../messages';
import type { Connection, Hop } from '../engine/types';
import type { Chat } from '../use-chat';

const BROKEN: Record<Hop, { what: Key; remedy: Key }> = {
  offline: { what: 'hop.offline', remedy: 'hop.offlineRemedy' },
  server: { what: 'hop.server', remedy: 'hop.serverRemedy' },
  silent: { what: 'hop.silent', remedy: 'hop.silentRemedy' },
  'no-upgrade': { what: 'hop.noUpgrade', remedy: 'hop.noUpgradeRemedy' },
  origin: { what: 'hop.origin', remedy: 'hop.originRemedy' },
  crowded: { what: 'hop.crowded', remedy: 'hop.crowdedRemedy' },
  instance: { what: 'hop.instance', remedy: 'hop.instanceRemedy' },
  starting: { what: 'hop.starting', remedy: 'hop.startingRemedy' },
  restarting: { what: 'hop.restarting', remedy: 'hop.startingRemedy' },
  'no-embed': { what: 'hop.noEmbed', remedy: 'hop.noEmbedRemedy' },
  session: { what: 'hop.session', remedy: 'hop.sessionRemedy' },
  'not-yours': { what: 'hop.notYours', remedy: 'hop.notYoursRemedy' },
  'too-long': { what: 'hop.tooLong', remedy: 'hop.tooLongRemedy' },
  refused: { what: 'hop.refused', remedy: 'hop.refusedRemedy' },
};

const TONES: Record<Connection['state'], Tone> = {
  connecting: 'busy',
  live: 'good',
  waiting: 'warn',
  readonly: 'bad',
};

export function ConnectionMark({ chat }: { chat: Chat }) {
  const { t } = useText();
  const { connection } = chat.state;
  const left = useSecondsLeft(connection.state === 'waiting' ? connection.retryAt : null);
  const text =
    connection.state === 'waiting'
      ? t('connection.waiting', { seconds: left })
      : t(`connection.${connection.state}`);
  return (
    <span role="status" className="flex items-center gap-1.5 text-xs whitespace-nowrap text-muted">
      <StatusDot tone={TONES[connection.state]} />
      <span className={connection.state === 'live' ? 'max-sm:sr-only' : ''}>{text}</span>
      {chat.engine.kind !== 'socket' && (
        <span className="max-lg:hidden">· {t(`way.${chat.engine.kind}`)}</span>
      )}
    </span>
  );
}

/** Nothing while all is well. */
export function ConnectionBar({ chat }: { chat: Chat }) {
  const { t } = useText();
  const { connection } = chat.state;
  if (connection.state === 'waiting' || connection.state === 'readonly')
    return (
      <Broken hop={connection.hop} onRetry={() => chat.engine.reconnect()} label={t('connection.now')} />
    );
  if (chat.fallback !== null)
    return (
      <Broken
        hop={chat.fallback}
        also={t('connection.fallback')}
        onRetry={() => chat.prefer(chat.preference)}
        label={t('state.retry')}
      />
    );
  return null;
}

function Broken({
  hop,
  also,
  onRetry,
  label,
}: {
  hop: Hop;
  also?: string;
  onRetry: () => void;
  label: string;
}) {
  const { t } = useText();
  const { what, remedy } = BROKEN[hop];
  return (
    <div className="mx-auto w-full max-w-3xl px-3 pt-2 sm:px-6">
      <Notice tone="warning">
        <div className="flex flex-wrap items-center gap-x-4 gap-y-1.5">
          <p className="min-w-0 flex-1 basis-60">
            <strong className="font-semibold">{t(what)}</strong> {t(remedy)} {also}
          </p>
          <Button size="small" onClick={onRetry}>
            {label}
          </Button>
        </div>
      </Notice>
    </div>
  );
}

function useSecondsLeft(moment: number | null): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    if (moment === null) return;
    const timer = setInterval(() => setNow(Date.now()), 500);
    return () => clearInterval(timer);
  }, [moment]);
  return moment === null ? 0 : Math.max(0, Math.ceil((moment - now) / 1000));
}
