// The instance's own log, read on its server and followed as it is written. Scrolling up holds the view still.
import { bearerOf } from '@tidepool/shared/api/client';
import { ApiError, unwrap } from '@tidepool/shared/api/envelope';
import { readEvents } from '@tidepool/shared/live/sse';
import { Status } from '@tidepool/shared/ui/badge';
import { Button } from '@tidepool/shared/ui/button';
import { EmptyState, ErrorState, Skeleton } from '@tidepool/shared/ui/states';
import { ArrowDown, Pause, Play } from 'lucide-react';
import { useEffect, useRef, useState } from 'react';
import { session } from '../api';
import { useText } from '../messages';
import type { InstanceDetail, JournalLine } from '../records';

const KEPT = 2_000;

type State = { kind: 'opening' | 'live' | 'ended' } | { kind: 'failed'; error: unknown };

function parse(data: string): JournalLine {
  const value: unknown = JSON.parse(data);
  if (typeof value === 'string') return { time: '', text: value };
  const { time = '', text = '' } = value as Partial<JournalLine>;
  return { time, text };
}

export function LogTab({ instance }: { instance: InstanceDetail }) {
  const { t, locale } = useText();
  const [lines, setLines] = useState<readonly JournalLine[]>([]);
  const [state, setState] = useState<State>({ kind: 'opening' });
  const [paused, setPaused] = useState(false);
  const [round, setRound] = useState(0);
  const [held, setHeld] = useState(false);
  const view = useRef<HTMLDivElement>(null);

  useEffect(() => {
    if (paused) return;
    const stop = new AbortController();
    const open = async () => {
      const { token } = session.state();
      const url = new URL(
        `api/v1/instances/${encodeURIComponent(instance.id)}/logs?lines=200&follow=true`,
        document.baseURI,
      );
      const headers = { authorization: bearerOf(token ?? ''), accept: 'text/event-stream' };
      const response = await fetch(url, { headers, signal: stop.signal });
      if (!response.ok || !response.body) {
        const error: unknown = await response.json().catch(() => null);
        await unwrap(Promise.resolve({ error, response }));
        return;
      }
      setLines([]);
      setState({ kind: 'live' });
      await readEvents(response.body, (event) => {
        if (event.event === 'error') {
          const { code = '5000', msg = '' } = JSON.parse(event.data) as { code?: string; msg?: string };
          throw new ApiError({ code, msg, status: 500 });
        }
        setLines((before) => [...before.slice(1 - KEPT), parse(event.data)]);
      });
      setState({ kind: 'ended' });
    };
    open().catch((error: unknown) => {
      if (!stop.signal.aborted) setState({ kind: 'failed', error });
    });
    return () => stop.abort();
  }, [instance.id, paused, round]);

  useEffect(() => {
    if (!held) view.current?.scrollTo({ top: view.current.scrollHeight });
  }, [lines, held]);

  const again = () => {
    setState({ kind: 'opening' });
    setRound(round + 1);
  };
  if (state.kind === 'failed' && lines.length === 0) {
    return <ErrorState error={state.error} onRetry={again} />;
  }
  return (
    <div className="space-y-3">
      <div className="flex flex-wrap items-center gap-3 text-sm">
        <Status
          tone={paused ? 'none' : state.kind === 'live' ? 'good' : state.kind === 'opening' ? 'busy' : 'warn'}
        >
          {t(paused ? 'log.paused' : `log.${state.kind}`)}
        </Status>
        <span className="text-muted">{t('log.lines', { count: lines.length })}</span>
        <div className="ms-auto flex gap-2">
          {(state.kind === 'ended' || state.kind === 'failed') && !paused && (
            <Button size="small" onClick={again}>
              {t('log.again')}
            </Button>
          )}
          <Button size="small" onClick={() => setPaused(!paused)}>
            {paused ? (
              <Play className="size-4" aria-hidden="true" />
            ) : (
              <Pause className="size-4" aria-hidden="true" />
            )}
            {t(paused ? 'log.resume' : 'log.pause')}
          </Button>
        </div>
      </div>
      {state.kind === 'opening' && lines.length === 0 && <Skeleton lines={6} />}
      {state.kind !== 'opening' && lines.length === 0 && (
        <EmptyState title={t('log.none')}>{t('log.noneText')}</EmptyState>
      )}
      {lines.length > 0 && (
        <div className="relative">
          <div
            ref={view}
            role="log"
            aria-label={t('instances.tab.log')}
            // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reachable by keyboard.
            tabIndex={0}
            onScroll={({ currentTarget: box }) =>
              setHeld(box.scrollHeight - box.scrollTop - box.clientHeight > 40)
            }
            className="h-[60dvh] overflow-auto rounded-lg border border-line bg-sunken p-3 font-mono text-xs leading-5"
          >
            {lines.map((line, index) => (
              // Lines are only added at the end and cut at the start; they have no identity of their own.
              <p key={index} className="whitespace-pre-wrap">
                {line.time && (
                  <span className="me-2 text-muted select-none">
                    {new Date(line.time).toLocaleTimeString(locale)}
                  </span>
                )}
                {line.text}
              </p>
            ))}
          </div>
          {held && (
            <Button
              size="small"
              className="absolute end-4 bottom-4 shadow-high"
              onClick={() => view.current?.scrollTo({ top: view.current.scrollHeight })}
            >
              <ArrowDown className="size-4" aria-hidden="true" />
              {t('log.newest')}
            </Button>
          )}
        </div>
      )}
    </div>
  );
}
