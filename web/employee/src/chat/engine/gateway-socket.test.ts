// @vitest-environment happy-dom
// The socket engine against a gateway on a real socket: chat, stop, break and pick-up, files, and that it ends when told.
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { WebSocket as NodeSocket } from 'ws';
import {
  chat,
  engine,
  finals,
  gateway,
  lastRun,
  live,
  opened,
  prompts,
  reply,
  seen,
  sent,
  SESSION,
  until,
} from './socket-bench';

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
    gateway.answers.set('sessions.create', ({ params }) => ({ ok: true, key: params.key }));
    engine.start();
    await until(() =>
      expect(engine.state().conversations.map(({ title }) => title)).toEqual(['Other', 'Main']),
    );
    engine.newConversation();
    const { conversation } = engine.state();
    expect(conversation).toMatch(/^agent:main:dashboard:[0-9a-f-]{36}$/);
    engine.send('first words');
    await until(() =>
      expect(
        gateway.requests.some(
          ({ method, params }) => method === 'sessions.patch' && params.label === 'first words',
        ),
      ).toBe(true),
    );
    const made = gateway.requests.filter(({ method }) => method === 'sessions.create');
    expect(made.map(({ params }) => params)).toEqual([{ key: conversation }]);
    expect(sent().map(({ params }) => params.sessionKey)).toEqual([conversation]);
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

  it('takes the files along when a prompt is asked again', async () => {
    engine.start();
    await live();
    engine.send('look', [{ name: 'a.png', type: 'image/png', size: 3, content: 'AAAA' }]);
    await until(() => expect(sent()).toHaveLength(1));
    chat(lastRun(), { state: 'final', message: reply('a crab') });
    await until(() => expect(seen().at(-1)).toBe('assistant done a crab'));
    expect(engine.regenerate()).toBe(true);
    await until(() => expect(sent()).toHaveLength(2));
    const [first, again] = sent().map(({ params }) => params);
    expect(again?.attachments).toEqual(first?.attachments);
    const prompts = engine.state().messages.filter(({ role }) => role === 'user');
    expect(prompts.map(({ files }) => files?.length)).toEqual([1, 1]);
  });

  it('asks nothing again whose files only the assistant has', async () => {
    const media = [{ fileName: 'a.png', sizeBytes: 3 }];
    const messages = [
      { role: 'user', content: 'look', timestamp: 1, idempotencyKey: 'p:user', __openclaw: { media } },
      { ...reply('a crab'), timestamp: 2 },
    ];
    gateway.answers.set('chat.history', () => ({ messages }));
    engine.start();
    await live();
    expect(engine.state().messages[0]?.files).toEqual([{ name: 'a.png', type: 'image/png', size: 3 }]);
    expect(engine.regenerate()).toBe(false);
    expect(sent()).toHaveLength(0);
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

  it('closes its socket when it is destroyed and never comes back', async () => {
    engine.start();
    await live();
    // Whatever it would try later waits for this clock.
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    engine.destroy();
    await until(() => expect(opened.map(({ readyState }) => readyState)).toEqual([NodeSocket.CLOSED]));
    await until(() => expect(gateway.sockets.size).toBe(0));
    await vi.advanceTimersByTimeAsync(10 * 60_000);
    expect(opened).toHaveLength(1);
  });
});
