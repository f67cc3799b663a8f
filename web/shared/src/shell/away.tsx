// What stands where a page should be whose code cannot be fetched: it says why, and looks itself when the network is back.
import { useEffect, useEffectEvent, useRef, useState } from 'react';
import { useI18n } from '../i18n/i18n';
import type { AwayProps } from '../lazy-part';
import { readStored, writeStored } from '../storage';
import { Button } from '../ui/button';
import { PageFailure } from './page-failure';

const FIRST_MS = 1000;
const MOST_MS = 30_000;

/** Calls back when the server answers, and again later as long as that does not help. The result looks at once. */
export function useWhenBack(onBack: () => void): () => void {
  const back = useEffectEvent(onBack);
  const lookNow = useRef<() => void>(() => undefined);
  useEffect(() => {
    let delay = FIRST_MS;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const left = new AbortController();
    const look = async () => {
      clearTimeout(timer);
      const answered = await isReachable(left.signal);
      if (left.signal.aborted) return;
      clearTimeout(timer);
      timer = setTimeout(() => void look(), delay);
      delay = Math.min(MOST_MS, delay * 2);
      if (answered) back();
    };
    lookNow.current = () => void look();
    const online = () => void look();
    window.addEventListener('online', online);
    timer = setTimeout(online, delay);
    return () => {
      left.abort();
      clearTimeout(timer);
      window.removeEventListener('online', online);
    };
  }, []);
  return () => lookNow.current();
}

/** The browser only knows whether it has a network, not whether the server is behind it. */
async function isReachable(signal: AbortSignal): Promise<boolean> {
  try {
    const address = new URL('boot.js', document.baseURI);
    return (await fetch(address, { method: 'HEAD', cache: 'no-store', signal })).ok;
  } catch {
    return false;
  }
}

function useOffline(): boolean {
  const [offline, setOffline] = useState(() => !navigator.onLine);
  useEffect(() => {
    const look = () => setOffline(!navigator.onLine);
    window.addEventListener('online', look);
    window.addEventListener('offline', look);
    return () => {
      window.removeEventListener('online', look);
      window.removeEventListener('offline', look);
    };
  }, []);
  return offline;
}

function Waiting({ onBack }: { onBack: () => void }) {
  const { t } = useI18n();
  const offline = useOffline();
  const look = useWhenBack(onBack);
  return (
    <div role="alert" className="mx-auto max-w-lg px-4 py-16 text-center">
      <p className="text-lg font-semibold">{t(offline ? 'state.offline' : 'state.unreachable')}</p>
      <p className="mt-1 mb-5 text-muted">{t('state.comesBack')}</p>
      <Button look="primary" onClick={look}>
        {t('state.retry')}
      </Button>
    </div>
  );
}

/** A part of a page: what else the page holds is not given up for it. */
export function Away({ retry, again }: AwayProps) {
  return again ? <PageFailure /> : <Waiting onBack={retry} />;
}

/** A part that is not missed: it comes when it can. */
export function Nothing({ retry, again }: AwayProps) {
  return again ? null : <Silent onBack={retry} />;
}

function Silent({ onBack }: { onBack: () => void }) {
  useWhenBack(onBack);
  return null;
}

const RELOADED = 'tidepool.reloaded';
const RELOAD_AGAIN_MS = 60_000;

/**
 * A whole page. An update removes files, and browsers of before the middle of 2026 keep a failed import for as long as the
 * document lives: then the document is loaded anew, once.
 */
export function AwayPage({ retry, again }: AwayProps) {
  const [reloads] = useState(() => again && mayReload());
  return reloads ? <Waiting onBack={reload} /> : <Away retry={retry} again={again} />;
}

function reload() {
  if (!mayReload()) return;
  writeStored(RELOADED, String(Date.now()), () => sessionStorage);
  window.location.reload();
}

function mayReload(): boolean {
  const last = Number(readStored(RELOADED, () => sessionStorage) ?? 0);
  return Date.now() - last > RELOAD_AGAIN_MS;
}
