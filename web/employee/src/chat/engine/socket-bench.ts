// A socket engine at a fake gateway, new for every test of a file that imports this, and what such tests say again and again.
import { afterEach, beforeEach, expect, vi } from 'vitest';
import { WebSocket as NodeSocket } from 'ws';
import { FakeGateway } from './fake-gateway';
import { GatewaySocket } from './gateway-socket';
import type { Dialled } from './socket-link';
import type { EngineEvents, Hop, Message } from './types';
import { Unfinished } from './unfinished';

export let gateway: FakeGateway;
export let engine: GatewaySocket;
export let prompts: Message[];
export let finals: Message[];
/** The conversations of those. */
export let finalsIn: (string | null)[];
export let unusable: Hop[];
export let unfinished: Unfinished;
/** The engine's ends of the sockets, the first opened first. */
export let opened: NodeSocket[];

beforeEach(async () => {
  gateway = await FakeGateway.start();
  prompts = [];
  finals = [];
  finalsIn = [];
  unusable = [];
  opened = [];
  unfinished = new Unfinished();
  useEngine();
});

afterEach(async () => {
  engine.destroy();
  await gateway.stop();
});

/** Instead of the one that was made for the test: this one finds its way by `dial`, and has `left` to finish. */
export function useEngine(
  dial: () => Promise<Dialled> = () => Promise.resolve({ url: gateway.url }),
  left = unfinished,
) {
  const events: EngineEvents = {
    onPrompt: (message) => prompts.push(message),
    onFinal: (message, conversation) => {
      finals.push(message);
      finalsIn.push(conversation);
    },
    onUnusable: (hop) => unusable.push(hop),
  };
  engine = new GatewaySocket(
    { dial, open, diagnose: () => Promise.resolve('no-upgrade') },
    events,
    (replies) => Promise.resolve(new Map(replies.map(({ id }) => [id, 0.0125]))),
    left,
  );
}

/** A browser's socket needs nobody to hear its errors; Node's does. */
function open(url: string): WebSocket {
  const socket = new NodeSocket(url);
  socket.on('error', () => null);
  opened.push(socket);
  return socket as unknown as WebSocket;
}

export const SESSION = 'agent:main:main';
export const reply = (text: string) => ({ role: 'assistant', content: [{ type: 'text', text }] });
export const chat = (runId: string, more: object) =>
  gateway.say('chat', { runId, sessionKey: SESSION, ...more });
export const seen = () =>
  engine.state().messages.map(({ role, status, text }) => `${role} ${status} ${text}`);
export const until = (check: () => void) => vi.waitFor(check, { timeout: 8000, interval: 20 });
export const live = () => until(() => expect(engine.state().connection.state).toBe('live'));
export const sent = () => gateway.requests.filter(({ method }) => method === 'chat.send');
export const lastRun = () => String(sent().at(-1)?.params.idempotencyKey);
