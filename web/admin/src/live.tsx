// Keeps an open page true: the server's events say what changed, and the queries that show it are asked again. While no
// events come, everything is asked every few seconds. Everybody can see which of these it is, and pause it.
import { useQueryClient, type QueryClient } from '@tanstack/react-query';
import { readEvents } from '@tidepool/shared/live/sse';
import { StatusDot, type Tone } from '@tidepool/shared/ui/badge';
import { Pause, Play } from 'lucide-react';
import { createContext, use, useEffect, useMemo, useState, type ReactNode } from 'react';
import { bearerOf } from '@tidepool/shared/api/client';
import { session } from './api';
import { useText } from './messages';

type State = 'connecting' | 'live' | 'waiting' | 'paused';

interface Live {
  state: State;
  toggle: () => void;
}

/** Query key roots, by the kind of an event; any other kind, `reset` among them, means everything. */
const TOPICS: Readonly<Record<string, readonly string[]>> = {
  instance: ['instances', 'pool', 'config', 'state', 'cell'],
  // What is on a server changes when a task is done with it.
  task: ['tasks', 'config', 'state', 'cell'],
  guardian: ['guardian'],
  guardian_alert: ['alerts'],
  guardian_repair: ['repairs'],
  metric: ['metrics', 'servers'],
  job: ['jobs'],
};
const ALL = [
  'instances',
  'config',
  'state',
  'cell',
  'tasks',
  'servers',
  'metrics',
  'users',
  'pool',
  'usage',
  'jobs',
  'guardian',
  'repairs',
  'alerts',
  'ready',
  // Another administrator may have changed one's role.
  'me',
];

const POLL_MS = 10_000;
/** Events are hints: even while they come, everything is asked again now and then. */
const SAFETY_MS = 60_000;
const GATHER_MS = 400;
const LONGEST_WAIT_MS = 30_000;

const Context = createContext<Live | null>(null);

export function LiveProvider({ children }: { children: ReactNode }) {
  const client = useQueryClient();
  const [paused, setPaused] = useState(false);
  const [state, setState] = useState<Exclude<State, 'paused'>>('connecting');

  useEffect(() => {
    if (paused) return;
    const stop = new AbortController();
    void follow(client, stop.signal, setState);
    return () => stop.abort();
  }, [client, paused]);

  useEffect(() => {
    if (paused) return;
    const period = state === 'live' ? SAFETY_MS : POLL_MS;
    const timer = setInterval(() => {
      if (document.visibilityState === 'visible') refresh(client, ALL);
    }, period);
    return () => clearInterval(timer);
  }, [client, paused, state]);

  const value = useMemo<Live>(
    () => ({
      state: paused ? 'paused' : state,
      toggle: () => {
        if (paused) refresh(client, ALL);
        setPaused(!paused);
      },
    }),
    [client, paused, state],
  );
  return <Context value={value}>{children}</Context>;
}

function refresh(client: QueryClient, roots: Iterable<string>) {
  for (const root of roots) void client.invalidateQueries({ queryKey: [root] });
}

async function follow(
  client: QueryClient,
  signal: AbortSignal,
  report: (state: Exclude<State, 'paused'>) => void,
) {
  const due = new Set<string>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const gather = (roots: readonly string[]) => {
    for (const root of roots) due.add(root);
    timer ??= setTimeout(() => {
      timer = undefined;
      refresh(client, due);
      due.clear();
    }, GATHER_MS);
  };
  // Who pauses sees nothing change any more, not even what was about to be asked for.
  signal.addEventListener('abort', () => clearTimeout(timer));
  let lastId = '';
  const stopped = () => signal.aborted;
  for (let failures = 0; !stopped(); failures += 1) {
    try {
      const headers = new Headers({ accept: 'text/event-stream' });
      const { token } = session.state();
      if (token === null) return;
      headers.set('authorization', bearerOf(token));
      if (lastId) headers.set('last-event-id', lastId);
      const response = await fetch(new URL('api/v1/events', document.baseURI), { headers, signal });
      if (response.ok && response.body) {
        report('live');
        if (failures > 0) gather(ALL);
        failures = 0;
        await readEvents(response.body, (event) => {
          lastId = event.id || lastId;
          gather(TOPICS[event.event] ?? ALL);
        });
      }
    } catch {
      if (stopped()) return;
    }
    report('waiting');
    await new Promise((resolve) => setTimeout(resolve, Math.min(LONGEST_WAIT_MS, 1_000 * 2 ** failures)));
  }
}

const TONES: Record<State, Tone> = {
  live: 'good',
  connecting: 'none',
  waiting: 'warn',
  paused: 'none',
};

/** The state in a word; pressing it pauses or goes on. */
export function LiveButton() {
  const { t } = useText();
  const live = use(Context);
  if (live === null) return null;
  const { state, toggle } = live;
  const Icon = state === 'paused' ? Play : Pause;
  return (
    <button
      type="button"
      onClick={toggle}
      aria-pressed={state === 'paused'}
      title={t(`live.${state}Hint`)}
      className="group flex min-h-9 items-center gap-2 rounded-lg px-2.5 text-sm text-muted hover:bg-sunken hover:text-ink"
    >
      <span className="flex size-3.5 items-center justify-center">
        <span className="flex group-hover:hidden group-focus-visible:hidden">
          <StatusDot tone={TONES[state]} />
        </span>
        <Icon className="hidden size-3.5 group-hover:block group-focus-visible:block" aria-hidden="true" />
      </span>
      <span className="sr-only whitespace-nowrap lg:not-sr-only">{t(`live.${state}`)}</span>
      <span className="sr-only">{t(state === 'paused' ? 'live.resume' : 'live.pause')}</span>
    </button>
  );
}
