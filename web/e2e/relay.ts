// The platform's relay, played by the test frame by frame.
import type { Page, WebSocketRoute } from '@playwright/test';

export const SESSION = 'agent:main:main';
export const text = (content: string) => ({ role: 'assistant', content: [{ type: 'text', text: content }] });

const HELLO = {
  protocol: 4,
  server: { version: '2026.9.6' },
  methods: ['chat.send', 'chat.history', 'chat.abort', 'sessions.list'],
  policy: {
    maxPayload: 26_214_400,
    tickIntervalMs: 30_000,
    attachments: { maxBytes: 2000, maxImageBytes: 1000 },
  },
};

export interface Relay {
  /** Open sockets by instance. */
  open: Map<string, WebSocketRoute>;
  closed: string[];
  sent: { id: string; method: string; params: Record<string, unknown> }[];
  /** What chat.history answers; of its messages the newest, as many as were asked for. */
  history: { messages: object[]; inFlightRun?: object };
  /** Answers all messages, however few were asked for. */
  whole: boolean;
  chat: (payload: object) => void;
}

export async function withRelay(page: Page): Promise<Relay> {
  const relay: Relay = {
    open: new Map(),
    closed: [],
    sent: [],
    history: { messages: [] },
    whole: false,
    chat: (payload) => {
      const frame = { type: 'event', event: 'chat', payload: { sessionKey: SESSION, ...payload } };
      for (const socket of relay.open.values()) socket.send(JSON.stringify(frame));
    },
  };
  const ticket = { code: '0000', data: { ticket: 'one-use', expires_at: '2099-01-01T00:00:00Z' }, msg: 'ok' };
  await page.route('**/ws-ticket', (route) => route.fulfill({ json: ticket }));
  await page.routeWebSocket(/\/me\/instances\/[^/]+\/ws\?ticket=one-use$/, (socket) => {
    const instance = /instances\/([^/]+)\/ws/.exec(socket.url())?.[1] ?? '';
    relay.open.set(instance, socket);
    socket.send(JSON.stringify({ type: 'event', event: 'relay.hello', payload: HELLO }));
    socket.onClose(() => {
      relay.closed.push(instance);
      relay.open.delete(instance);
    });
    socket.onMessage((data) => {
      const request = JSON.parse(String(data)) as Relay['sent'][number];
      relay.sent.push(request);
      const answers: Record<string, unknown> = {
        'chat.history': {
          ...relay.history,
          messages: relay.whole
            ? relay.history.messages
            : relay.history.messages.slice(-Number(request.params.limit ?? 0)),
        },
        'sessions.list': { sessions: [{ key: SESSION, label: 'Main', updatedAt: Date.now() }] },
        'chat.send': { runId: request.params.idempotencyKey, status: 'started' },
        'chat.abort': { ok: true, aborted: true },
      };
      socket.send(
        JSON.stringify({ type: 'res', id: request.id, ok: true, payload: answers[request.method] ?? {} }),
      );
    });
  });
  return relay;
}
