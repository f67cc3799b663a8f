// The socket engine against a gateway on a real socket: chat, stop, break and pick-up, refusals, and that it ends when told.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { WebSocket as NodeSocket } from 'ws';
import { FakeGateway, Refused } from './fake-gateway';
import { GatewaySocket } from './gateway-socket';
import { HopError, type Dialled } from './socket-link';
import type { EngineEvents, Hop, Message } from './types';

let gateway: FakeGateway;
let engine: GatewaySocket;
let prompts: Message[];
let finals: Message[];
let unusable: Hop[];
let undelivered: string[];
let diagnosis: Hop;
let straightUrl = '';

const SESSION = 'agent:main:main';
const reply = (text: string) => ({ role: 'assistant', content: [{ type: 'text', text }] });
const chat = (runId: string, more: object) => gateway.say('chat', { runId, sessionKey: SESSION, ...more });
const seen = () => engine.state().messages.map(({ role, status, text }) => `${role} ${status} ${text}`);
const until = (check: () => void) => vi.waitFor(check, { timeout: 8000, interval: 20 });
const live = () => until(() => expect(engine.state().connection.state).toBe('live'));
const sent = () => gateway.requests.filter(({ method }) => method === 'chat.send');
const lastRun = () => String(sent().at(-1)?.params.idempotencyKey);

/** A browser's socket needs nobody to hear its errors; Node's does. */
function open(url: string): WebSocket {
  const socket = new NodeSocket(url);
  socket.on('error', () => null);
  return socket as unknown as WebSocket;
}

function make(dial: () => Promise<Dialled> = () => Promise.resolve({ url: gateway.url })): GatewaySocket {
  const events: EngineEvents = {
    onPrompt: (message) => prompts.push(message),
    onFinal: (message) => finals.push(message),
    onUnusable: (hop, unsent) => {
      unusable.push(hop);
      undelivered.push(...unsent);
    },
  };
  return new GatewaySocket(
    {
      dial,
      open,
      diagnose: () => Promise.resolve(diagnosis),
    },
    events,
    (replies) => Promise.resolve(new Map(replies.map(({ id }) => [id, 0.0125]))),
  );
}

beforeEach(async () => {
  gateway = await FakeGateway.start();
  prompts = [];
  finals = [];
  unusable = [];
  undelivered = [];
  diagnosis = 'no-upgrade';
  engine = make();
});

afterEach(async () => {
  engine.destroy();
  await gateway.stop();
});

describe('gateway socket', () => {
  it('chats: the prompt is taken, phases and words come, the end is told with what it used', async () => {
    engine.start();
    await live();
    engine.send('2+2?');
    await until(() => expect(sent()).toHaveLength(1));
    const run = lastRun();
    chat(run, { state: 'status', phase: 'starting_model' });
    await until(() => expect(engine.state().messages.at(-1)?.phase).toBe('starting_model'));
    chat(run, { state: 'delta', deltaText: '4', message: reply('4') });
    await until(() => expect(seen()).toEqual(['user sent 2+2?', 'assistant streaming 4']));
    gateway.answers.set('chat.history', () => ({
      messages: [
        {
          ...reply('4.'),
          model: 'm',
          usage: { input: 120, output: 17, totalTokens: 137, cost: { total: 0.000154 } },
        },
      ],
    }));
    chat(run, { state: 'final', message: reply('4.') });
    await until(() => expect(finals.map(({ text }) => text)).toEqual(['4.']));
    expect(prompts.map(({ text }) => text)).toEqual(['2+2?']);
    expect(finals[0]).toMatchObject({ status: 'done', usage: { total: 137, cost: null }, model: 'm' });
    // Not what the assistant takes it for, but what the request log says.
    await until(() => expect(engine.state().messages.at(-1)?.usage?.cost).toBe(0.0125));
  });

  it('adds up what all requests of a reply with tools used, however many there were', async () => {
    engine.start();
    await live();
    engine.send('look');
    await until(() => expect(sent()).toHaveLength(1));
    const step = (n: number) => ({
      role: 'assistant',
      content: [{ type: 'toolCall', id: `t${n}`, name: 'read', arguments: {} }],
      usage: { input: 10, output: 1, totalTokens: 11 },
    });
    const turn = [
      { role: 'user', content: 'look' },
      ...[1, 2, 3, 4].map(step),
      { ...reply('Seen.'), usage: { input: 20, output: 2, totalTokens: 22 } },
    ];
    gateway.answers.set('chat.history', ({ params }) => ({
      messages: turn.slice(-Number(params.limit)),
    }));
    chat(lastRun(), { state: 'final', message: reply('Seen.') });
    await until(() => expect(finals).toHaveLength(1));
    expect(finals[0]?.usage).toMatchObject({ total: 66, calls: { length: 5 } });
  });

  it('hears only the open session', async () => {
    engine.start();
    await live();
    gateway.say('chat', {
      runId: 'x',
      sessionKey: 'agent:main:other',
      state: 'delta',
      message: reply('not for us'),
    });
    engine.send('mine');
    await until(() => expect(sent()).toHaveLength(1));
    chat(lastRun(), { state: 'delta', message: reply('ours') });
    await until(() => expect(seen().at(-1)).toBe('assistant streaming ours'));
    expect(seen().join()).not.toContain('not for us');
  });

  it('stops the run and keeps what has come', async () => {
    engine.start();
    await live();
    engine.send('long');
    await until(() => expect(sent()).toHaveLength(1));
    const run = lastRun();
    chat(run, { state: 'delta', message: reply('Hel') });
    await until(() => expect(seen().at(-1)).toBe('assistant streaming Hel'));
    engine.stop();
    await until(() =>
      expect(gateway.requests.at(-1)).toMatchObject({ method: 'chat.abort', params: { runId: run } }),
    );
    chat(run, { state: 'aborted', message: reply('Hel') });
    await until(() => expect(seen().at(-1)).toBe('assistant stopped Hel'));
  });

  it('picks a running reply up again after the connection broke', async () => {
    engine.start();
    await live();
    engine.send('count');
    await until(() => expect(sent()).toHaveLength(1));
    const run = lastRun();
    chat(run, { state: 'delta', message: reply('one') });
    await until(() => expect(seen().at(-1)).toBe('assistant streaming one'));
    gateway.answers.set('chat.history', () => ({
      messages: [{ role: 'user', content: 'count', idempotencyKey: `${run}:user`, timestamp: 1 }],
      inFlightRun: { runId: run, text: 'one two', startedAt: 1 },
    }));
    gateway.cut();
    await until(() => expect(engine.state().connection.state).toBe('waiting'));
    await live();
    expect(seen()).toEqual(['user sent count', 'assistant streaming one two']);
    chat(run, { state: 'delta', message: reply('one two three') });
    await until(() => expect(seen().at(-1)).toBe('assistant streaming one two three'));
    expect(sent()).toHaveLength(1);
  });

  it('sends what was written meanwhile, with the same key after a break', async () => {
    engine.start();
    await live();
    gateway.answers.set('chat.send', (_request, socket) => {
      socket.terminate();
      return {};
    });
    engine.send('lost on the way');
    await until(() => expect(engine.state().connection.state).toBe('waiting'));
    expect(seen()).toEqual(['user queued lost on the way']);
    gateway.answers.set('chat.send', ({ params }) => ({ runId: params.idempotencyKey, status: 'in_flight' }));
    await until(() => expect(sent()).toHaveLength(2));
    expect(sent()[0]?.params.idempotencyKey).toBe(sent()[1]?.params.idempotencyKey);
    await until(() => expect(seen()[0]).toBe('user sent lost on the way'));
  });

  it('shows tools while they run and when they failed', async () => {
    engine.start();
    await live();
    engine.send('look');
    await until(() => expect(sent()).toHaveLength(1));
    const tool = (data: object) =>
      gateway.say('agent', { runId: lastRun(), sessionKey: SESSION, stream: 'tool', data });
    tool({ phase: 'start', name: 'read', toolCallId: 't1', args: { path: 'a.md' } });
    await until(() =>
      expect(engine.state().messages.at(-1)?.tools).toMatchObject([{ name: 'read', state: 'running' }]),
    );
    tool({ phase: 'result', toolCallId: 't1', result: 'no such file', isError: true });
    await until(() =>
      expect(engine.state().messages.at(-1)?.tools).toMatchObject([
        { name: 'read', state: 'failed', output: 'no such file' },
      ]),
    );
  });

  it('names an assistant’s own failure', async () => {
    engine.start();
    await live();
    engine.send('x');
    await until(() => expect(sent()).toHaveLength(1));
    chat(lastRun(), { state: 'error', errorMessage: 'LLM request failed' });
    await until(() =>
      expect(engine.state().messages.at(-1)).toMatchObject({
        status: 'broken',
        failure: { msg: 'LLM request failed' },
      }),
    );
  });

  it('opens, lists and makes conversations', async () => {
    gateway.answers.set('sessions.list', () => ({
      sessions: [
        { key: SESSION, label: 'Main', updatedAt: 2 },
        { key: 'agent:main:b', label: 'Other', updatedAt: 3 },
      ],
    }));
    gateway.answers.set('sessions.create', () => ({ key: 'agent:main:new' }));
    engine.start();
    await until(() =>
      expect(engine.state().conversations.map(({ title }) => title)).toEqual(['Other', 'Main']),
    );
    engine.newConversation();
    await until(() => expect(engine.state().conversation).toBe('agent:main:new'));
    engine.send('first words');
    await until(() =>
      expect(
        gateway.requests.some(
          ({ method, params }) => method === 'sessions.patch' && params.label === 'first words',
        ),
      ).toBe(true),
    );
    expect(sent()[0]?.params.sessionKey).toBe('agent:main:new');
  });

  it.each<[string, [number, string], Hop]>([
    ['the instance is down', [1011, 'cannot reach the instance'], 'instance'],
    ['the origin is refused', [1008, 'origin not allowed'], 'origin'],
  ])('gives up when %s, and says so', async (_name, refusal, hop) => {
    gateway.refuse = refusal;
    engine.start();
    await until(() => expect(unusable).toEqual([hop]));
  });

  it('waits while the gateway starts', async () => {
    gateway.refuse = [1013, 'gateway starting'];
    engine.start();
    await until(() => expect(engine.state().connection).toMatchObject({ state: 'waiting', hop: 'starting' }));
    gateway.refuse = null;
    await live();
    expect(unusable).toEqual([]);
  });

  it('falls back where a proxy passes no upgrade on, and loses nothing', async () => {
    engine = make(() => Promise.resolve({ url: 'ws://127.0.0.1:1/' }));
    engine.start();
    engine.send('not lost');
    await until(() => expect(unusable).toEqual(['no-upgrade']));
    expect(undelivered).toEqual(['not lost']);
    expect(prompts).toEqual([]);
  });

  it('is read only for an instance that is not one’s own, and looks for no other way', async () => {
    engine = make(() => Promise.reject(new HopError('not-yours')));
    engine.start();
    await until(() => expect(engine.state().connection).toEqual({ state: 'readonly', hop: 'not-yours' }));
    expect(unusable).toEqual([]);
  });

  it.each<[string, () => void]>([
    ['the gateway wants to be paired', () => gateway.answers.delete('connect')],
    ['the gateway closes', () => (gateway.refuse = [1008, 'origin not allowed'])],
    ['nothing listens', () => (straightUrl = 'ws://127.0.0.1:1/')],
    ['the browser forbids it', () => (straightUrl = 'no address')],
  ])('takes the relay at once when the straight way fails: %s', async (_name, arrange) => {
    const relay = await FakeGateway.start();
    gateway.challenge = true;
    straightUrl = gateway.url;
    arrange();
    let straight = true;
    const detour = () => {
      straight = false;
    };
    engine = make(() =>
      Promise.resolve(
        straight
          ? { url: straightUrl, introduce: () => Promise.resolve({ device: {} }), detour }
          : { url: relay.url },
      ),
    );
    const states: string[] = [];
    engine.subscribe(() => states.push(engine.state().connection.state));
    engine.start();
    await live();
    expect(relay.requests.some(({ method }) => method === 'chat.history')).toBe(true);
    expect(states).not.toContain('waiting');
    expect(unusable).toEqual([]);
    engine.destroy();
    await relay.stop();
  });

  it.each([
    ['has its device approved and comes again the same way', true],
    ['takes the relay where nobody approves it', false],
  ])('%s', async (_name, approves) => {
    const relay = await FakeGateway.start();
    const asked: string[] = [];
    let approved = false;
    gateway.challenge = true;
    gateway.answers.set('connect', (_request, socket) => {
      if (approved) return { type: 'hello-ok', protocol: 4 };
      setTimeout(() => socket.close(1008, 'pairing required'), 5);
      return new Refused({
        code: 'NOT_PAIRED',
        message: 'pairing required',
        details: { code: 'PAIRING_REQUIRED', requestId: 'r1' },
      });
    });
    const approve = (request: string) => {
      asked.push(request);
      approved = approves;
      return approves ? Promise.resolve() : Promise.reject(new Error('refused'));
    };
    let straight = true;
    const detour = () => {
      straight = false;
    };
    const introduce = () => Promise.resolve({ device: {} });
    engine = make(() =>
      Promise.resolve(straight ? { url: gateway.url, introduce, approve, detour } : { url: relay.url }),
    );
    engine.start();
    await live();
    expect(asked).toEqual(['r1']);
    const used = approves ? gateway : relay;
    expect(used.requests.some(({ method }) => method === 'chat.history')).toBe(true);
    expect(straight).toBe(approves);
    engine.destroy();
    await relay.stop();
  });

  it('takes files along with what the gateway’s greeting allows', async () => {
    gateway.hello = {
      policy: {
        maxPayload: 2000,
        tickIntervalMs: 30_000,
        attachments: { maxBytes: 500, maxImageBytes: 100 },
      },
    };
    engine.start();
    await live();
    expect(engine.state().attachable).toEqual({ maxBytes: 500, maxImageBytes: 100, maxPayload: 2000 });
    const picture = { name: 'a.png', type: 'image/png', size: 3, content: 'AAAA' };
    engine.send('look', [picture]);
    await until(() => expect(sent()).toHaveLength(1));
    expect(sent()[0]?.params.attachments).toEqual([
      { type: 'image', mimeType: 'image/png', fileName: 'a.png', content: 'AAAA' },
    ]);
    expect(engine.state().messages[0]?.files).toEqual([{ name: 'a.png', type: 'image/png', size: 3 }]);
  });

  it('says of what is too long that it is, and does not send it again and again', async () => {
    gateway.hello = { policy: { maxPayload: 300 } };
    engine.start();
    await live();
    engine.send('x'.repeat(400));
    await until(() =>
      expect(engine.state().messages[0]).toMatchObject({ status: 'failed', failure: { code: '4130' } }),
    );
    expect(sent()).toHaveLength(0);
    expect(engine.state().connection.state).toBe('live');
  });

  it('gives a prompt up at which the connection was closed as too long', async () => {
    engine.start();
    await live();
    gateway.answers.set('chat.send', (_request, socket) => {
      socket.close(1009, 'a frame is too long');
      return 'unanswered';
    });
    engine.send('long');
    await until(() => expect(engine.state().connection).toMatchObject({ state: 'waiting', hop: 'too-long' }));
    await live();
    expect(engine.state().messages[0]).toMatchObject({ status: 'failed', failure: { code: '4130' } });
    expect(sent()).toHaveLength(1);
  });

  it('tells every tab’s reply by its run', async () => {
    engine.start();
    await live();
    engine.send('x');
    await until(() => expect(sent()).toHaveLength(1));
    const run = lastRun();
    chat(run, { state: 'final', message: reply('y') });
    await until(() => expect(finals.map((final) => final.run)).toEqual([run]));
    expect(prompts.map(({ id }) => id)).toEqual([run]);
  });

  describe('what is older than the first reading', () => {
    /** A conversation of so many messages, the newest of which are answered. */
    const conversation = (size: number) => ({
      messages: Array.from({ length: size }, (_, index) => ({
        ...(index % 2 === 0 ? { role: 'user', content: `q${index}` } : reply(`a${index}`)),
        timestamp: 1000 + index,
      })),
    });
    const answer = (size: number) =>
      gateway.answers.set('chat.history', ({ params }) => ({
        messages: conversation(size).messages.slice(-Number(params.limit)),
      }));
    const asked = () =>
      gateway.requests.filter(({ method }) => method === 'chat.history').map(({ params }) => params.limit);

    it('comes when it is asked for, before what is there, while a reply goes on growing', async () => {
      answer(301);
      engine.start();
      await live();
      expect(engine.state().older).toBe('more');
      expect(engine.state().messages).toHaveLength(200);
      engine.send('more?');
      await until(() => expect(sent()).toHaveLength(1));
      chat(lastRun(), { state: 'delta', message: reply('grow') });
      await until(() => expect(seen().at(-1)).toBe('assistant streaming grow'));
      const before = engine.state().messages;

      engine.loadOlder();
      engine.loadOlder();
      expect(engine.state().older).toBe('loading');
      chat(lastRun(), { state: 'delta', message: reply('growing') });
      await until(() => expect(engine.state().older).toBe('beginning'));
      await until(() => expect(seen().at(-1)).toBe('assistant streaming growing'));
      const { messages } = engine.state();
      expect(messages.map(({ text }) => text).slice(0, 301)).toEqual(
        Array.from({ length: 301 }, (_, index) => (index % 2 === 0 ? `q${index}` : `a${index}`)),
      );
      expect(messages).toHaveLength(303);
      expect(new Set(messages.map(({ id }) => id)).size).toBe(303);
      // What was shown is the same as before, not read anew.
      expect(messages.slice(102, 301)).toEqual(before.slice(1, 200));
      expect(messages[150]).toBe(before[49]);
      expect(asked()).toEqual([200, 1000]);
    });

    it('says where to look when there is more than the gateway answers', async () => {
      answer(1500);
      engine.start();
      await live();
      engine.loadOlder();
      await until(() => expect(engine.state().older).toBe('history'));
      expect(engine.state().messages).toHaveLength(1000);
      gateway.cut();
      await until(() => expect(asked()).toEqual([200, 1000, 1000]));
      await live();
      expect(engine.state().messages).toHaveLength(1000);
      expect(engine.state().older).toBe('history');
    });

    it('is not asked for where the first reading was all', async () => {
      answer(199);
      engine.start();
      await live();
      expect(engine.state().older).toBe('nothing');
      engine.loadOlder();
      expect(asked()).toEqual([200]);
    });

    it('can be asked for again when it failed', async () => {
      answer(250);
      engine.start();
      await live();
      gateway.answers.set('chat.history', () => new Refused({ code: 'UNAVAILABLE', message: 'busy' }));
      engine.loadOlder();
      await until(() => expect(engine.state().older).toBe('failed'));
      expect(engine.state().messages).toHaveLength(200);
      answer(250);
      engine.loadOlder();
      await until(() => expect(engine.state().messages).toHaveLength(250));
    });

    it('makes a reply whole that the first reading had the end of', async () => {
      const call = (id: string) => ({
        role: 'assistant',
        content: [
          { type: 'text', text: id },
          { type: 'toolCall', id, name: 'read', arguments: {} },
        ],
      });
      const messages = [
        { role: 'user', content: 'long work' },
        ...Array.from({ length: 150 }, (_, index) => [
          call(`t${index}`),
          { role: 'toolResult', toolCallId: `t${index}`, content: 'ok' },
        ]).flat(),
        reply('done'),
        { role: 'user', content: 'thanks' },
      ].map((message, index) => ({ ...message, timestamp: 1000 + index }));
      gateway.answers.set('chat.history', ({ params }) => ({
        messages: messages.slice(-Number(params.limit)),
      }));
      engine.start();
      await live();
      expect(engine.state().messages).toHaveLength(2);
      engine.loadOlder();
      await until(() => expect(engine.state().older).toBe('beginning'));
      expect(engine.state().messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user']);
      expect(engine.state().messages[1]?.tools).toHaveLength(150);
    });
  });

  it('closes its socket when it is destroyed and never comes back', async () => {
    engine.start();
    await live();
    expect(gateway.sockets.size).toBe(1);
    engine.destroy();
    await until(() => expect(gateway.sockets.size).toBe(0));
    await new Promise((resolve) => setTimeout(resolve, 1500));
    expect(gateway.sockets.size).toBe(0);
  });
});
