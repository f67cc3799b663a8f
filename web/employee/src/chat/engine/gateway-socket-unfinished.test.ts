// @vitest-environment happy-dom
// What the socket engine holds of prompts and replies that are not finished, and what it lets go of.
import { beforeEach, describe, expect, it } from 'vitest';
import { forgetThreads } from '../local-threads';
import { promptStore } from '../prompt-store';
import { anotherTab } from './another-tab';
import { Refused } from './fake-gateway';
import {
  chat,
  engine,
  finals,
  gateway,
  lastRun,
  live,
  prompts,
  reply,
  seen,
  sent,
  SESSION,
  unfinished,
  until,
  useEngine,
} from './socket-bench';
import { isRunning } from './types';
import { Unfinished } from './unfinished';

beforeEach(forgetThreads);

const prompt = (run: string, text = 'count') => ({
  role: 'user',
  content: text,
  idempotencyKey: `${run}:user`,
  timestamp: 1,
});
const piece = (runId: string | undefined, content: object[]) => ({
  role: 'assistant',
  content,
  timestamp: 2,
  ...(runId !== undefined && { __openclaw: { runId } }),
});
const text = (words: string) => ({ type: 'text', text: words });
const CALL = { type: 'toolCall', id: 't1', name: 'read', arguments: {} };

async function asked(...texts: string[]): Promise<string[]> {
  engine.start();
  await live();
  for (const [index, one] of texts.entries()) {
    engine.send(one);
    await until(() => expect(sent()).toHaveLength(index + 1));
    await until(() => expect(prompts).toHaveLength(index + 1));
  }
  return sent().map(({ params }) => String(params.idempotencyKey));
}

/** The connection breaks, and what the gateway then has of the conversation is this. */
async function readAnew(history: object) {
  gateway.answers.set('chat.history', () => history);
  gateway.cut();
  await until(() => expect(engine.state().connection.state).toBe('waiting'));
  await live();
}

describe('a reply whose end was not heard', () => {
  const IDLE = { sessionInfo: { hasActiveRun: false } };

  it.each<[string, (run: string) => object]>([
    ['the release does not say what runs', () => ({})],
    ['another run is the one that is named', () => ({ inFlightRun: { runId: 'newer', text: '' } })],
    ['something runs that is not named', () => ({ sessionInfo: { hasActiveRun: true } })],
  ])('is not saved from its first step where %s', async (_name, more) => {
    const [run = ''] = await asked('count');
    await readAnew({ messages: [prompt(run), piece(run, [text('I look.')])], ...more(run) });
    expect(finals).toEqual([]);
    chat(run, { state: 'final', message: reply('All of it.') });
    await until(() => expect(finals).toMatchObject([{ text: 'All of it.', run }]));
  });

  it('is not saved while it ends with the call of a tool', async () => {
    const [run = ''] = await asked('count');
    await readAnew({ messages: [prompt(run), piece(run, [text('I look.'), CALL])], ...IDLE });
    expect(finals).toEqual([]);
    await readAnew({
      messages: [prompt(run), piece(run, [text('I look.'), CALL]), piece(run, [text('Seen.')])],
      ...IDLE,
    });
    expect(finals).toMatchObject([{ text: 'I look.\n\nSeen.', run }]);
  });

  it('is told by its run, not by its place', async () => {
    const [first = '', second = ''] = await asked('one', 'two');
    await readAnew({
      messages: [
        prompt(first, 'one'),
        prompt(second, 'two'),
        piece(first, [text('First.')]),
        piece(second, [text('Second.')]),
      ],
      ...IDLE,
    });
    const saved = finals.map((final) => [final.run, final.text]);
    expect(saved).toEqual([
      [first, 'First.'],
      [second, 'Second.'],
    ]);
  });
});

describe('a reply that runs', () => {
  it('can be stopped when something was refused after it', async () => {
    const [run = ''] = await asked('count');
    chat(run, { state: 'delta', message: reply('one') });
    await until(() => expect(seen().at(-1)).toBe('assistant streaming one'));
    gateway.answers.set('chat.send', () => new Refused({ code: 'UNAVAILABLE', message: 'busy' }));
    engine.send('more');
    await until(() => expect(seen().at(-1)).toBe('user failed more'));
    expect(isRunning(engine.state())).toBe(true);
    engine.stop();
    await until(() =>
      expect(gateway.requests.at(-1)).toMatchObject({ method: 'chat.abort', params: { runId: run } }),
    );
  });
});

describe('a prompt', () => {
  it('is replaced when it was refused and is changed', async () => {
    gateway.answers.set('chat.send', () => new Refused({ code: 'UNAVAILABLE', message: 'busy' }));
    engine.start();
    await live();
    engine.send('refused');
    await until(() => expect(seen()).toEqual(['user failed refused']));
    gateway.answers.set('chat.send', ({ params }) => ({ runId: params.idempotencyKey, status: 'started' }));
    const id = engine.state().messages[0]?.id ?? '';
    engine.edit(id, 'better');
    await until(() => expect(seen()[0]).toBe('user sent better'));
    expect(seen()).toHaveLength(2);
    expect(unfinished.prompt(id)).toBeUndefined();
  });

  it('stays in the thread between its taking and the history that has it', async () => {
    const [run = ''] = await asked('count');
    await readAnew({
      messages: [{ role: 'user', content: 'before', timestamp: 1 }, piece(undefined, [text('Yes.')])],
      inFlightRun: { runId: run, text: '', startedAt: 3 },
      sessionInfo: { hasActiveRun: true },
    });
    expect(seen()).toEqual([
      'user sent before',
      'assistant done Yes.',
      'user sent count',
      'assistant streaming ',
    ]);
    expect(sent()).toHaveLength(1);
    expect(unfinished.waiting()).toEqual([]);
    await readAnew({ messages: [prompt(run)], inFlightRun: { runId: run, text: 'one', startedAt: 3 } });
    expect(seen()).toEqual(['user sent count', 'assistant streaming one']);
    expect(unfinished.prompt(run)).toBeUndefined();
    expect(prompts).toHaveLength(1);
  });

  it('is let go of when its run has ended', async () => {
    const [run = ''] = await asked('count');
    chat(run, { state: 'error', errorMessage: 'no model' });
    await until(() => expect(seen().at(-1)).toContain('assistant broken'));
    expect(unfinished.prompt(run)).toBeUndefined();
  });

  it('that waits outlives the page, and goes out once', async () => {
    const store = promptStore('user', 'inst');
    useEngine(undefined, new Unfinished(store));
    engine.send('waits');
    engine.send('with a file', [{ name: 'a', type: '', size: 3, content: 'AAAA' }]);
    const id = engine.state().messages[0]?.id ?? '';
    engine.destroy();

    const later = new Unfinished(store);
    expect(later.waiting()).toMatchObject([
      { message: { id, text: 'waits' }, session: SESSION, tried: false },
    ]);
    useEngine(undefined, later);
    expect(seen()).toEqual(['user queued waits']);
    engine.start();
    await until(() => expect(prompts.map(({ text }) => text)).toEqual(['waits']));
    expect(lastRun()).toBe(id);
    expect(sent()).toHaveLength(1);
    expect(store.read()).toEqual([]);
  });

  it('that waits in another tab may be on its way from there', () => {
    const store = promptStore('user', 'inst');
    useEngine(undefined, new Unfinished(store));
    engine.send('waits');
    anotherTab();
    expect(new Unfinished(store).waiting()).toMatchObject([{ tried: true }]);
  });

  it('of another tab is not sent once that one has changed it or had it delivered', async () => {
    const store = promptStore('user', 'inst');
    const first = new Unfinished(store);
    useEngine(undefined, first);
    engine.send('waits');
    engine.send('too');
    const [changed = '', kept = ''] = engine.state().messages.map(({ id }) => id);
    engine.destroy();
    anotherTab();
    useEngine(undefined, new Unfinished(store));
    first.drop(changed);
    engine.start();
    await until(() => expect(sent().map(({ params }) => params.idempotencyKey)).toEqual([kept]));
    expect(seen()[0]).toContain('too');
    // And the first tab does not have it delivered another way, as if nobody had.
    await until(() => expect(prompts).toHaveLength(1));
    expect(first.handOver(SESSION)).toMatchObject([{ message: { text: 'too' }, tried: true }]);
  });

  it('never went out, where the browser has no room for what waits', () => {
    const full = new Unfinished({ read: () => [], has: () => false, keep: () => null, drop: () => null });
    useEngine(undefined, full);
    engine.send('waits');
    expect(full.handOver(SESSION)).toMatchObject([{ message: { text: 'waits' }, tried: false }]);
  });

  it('that may stand before what was read is left to the person', async () => {
    const at = Date.now() - 60_000;
    unfinished.add({
      message: { id: 'p', role: 'user', text: 'long ago', at, status: 'queued' },
      session: SESSION,
      files: [],
      tried: true,
    });
    const newer = { role: 'user', content: 'newer', timestamp: at + 1000 };
    gateway.answers.set('chat.history', () => ({ messages: Array(200).fill(newer) as object[] }));
    engine.start();
    await live();
    expect(engine.state().messages.find(({ id }) => id === 'p')).toMatchObject({
      status: 'failed',
      failure: { code: 'unsure' },
    });
    expect(sent()).toEqual([]);
  });
});

describe('a prompt on its way', () => {
  /** The gateway takes it, and its answer to that is held back. */
  async function unanswered() {
    let answer = (): unknown => null;
    gateway.answers.set('chat.send', ({ params }) => {
      return new Promise((resolve) => (answer = () => resolve({ runId: params.idempotencyKey })));
    });
    engine.start();
    await live();
    engine.send('count');
    await until(() => expect(sent()).toHaveLength(1));
    return () => answer();
  }
  const aborted = () => gateway.requests.filter(({ method }) => method === 'chat.abort');

  it('can be stopped: its run is, once there is one', async () => {
    const answer = await unanswered();
    expect(isRunning(engine.state())).toBe(true);
    engine.stop();
    expect(aborted()).toEqual([]);
    answer();
    await until(() => expect(aborted()).toMatchObject([{ params: { runId: lastRun() } }]));
  });

  it('goes on when the reply before it is stopped', async () => {
    const [run = ''] = await asked('count');
    chat(run, { state: 'delta', message: reply('one') });
    await until(() => expect(seen().at(-1)).toBe('assistant streaming one'));
    let answer = (): unknown => null;
    gateway.answers.set('chat.send', ({ params }) => {
      return new Promise((resolve) => (answer = () => resolve({ runId: params.idempotencyKey })));
    });
    engine.send('and then');
    await until(() => expect(sent()).toHaveLength(2));
    engine.stop();
    answer();
    await until(() => expect(prompts).toHaveLength(2));
    await until(() => expect(aborted()).toMatchObject([{ params: { runId: run } }]));
  });

  it('was taken when its reply is heard, answer or not', async () => {
    await unanswered();
    chat(lastRun(), { state: 'delta', message: reply('one') });
    await until(() => expect(seen()).toEqual(['user sent count', 'assistant streaming one']));
    expect(prompts).toHaveLength(1);
  });

  it('to which no answer came may have arrived: changed, it is not replaced', async () => {
    gateway.answers.set('chat.send', () => new Refused({ code: '5040', message: 'no answer' }));
    engine.start();
    await live();
    engine.send('count');
    await until(() => expect(seen()).toEqual(['user failed count']));
    expect(engine.state().messages[0]?.failure?.code).toBe('unsure');
    engine.edit(engine.state().messages[0]?.id ?? '', 'count to ten');
    expect(seen()).toEqual(['user failed count', 'user sending count to ten']);
  });

  it('has its files with it when it was refused and its words are changed', async () => {
    gateway.answers.set('chat.send', () => new Refused({ code: 'UNAVAILABLE', message: 'busy' }));
    engine.start();
    await live();
    engine.send('look', [{ name: 'a.txt', type: 'text/plain', size: 3, content: 'AAAA' }]);
    await until(() => expect(seen()).toEqual(['user failed look']));
    engine.edit(engine.state().messages[0]?.id ?? '', 'look here', []);
    expect(engine.state().messages).toMatchObject([{ text: 'look here', files: [{ name: 'a.txt' }] }]);
    await until(() => expect(sent().at(-1)?.params.attachments).toHaveLength(1));
  });
});

describe('a new conversation', () => {
  it('has what is said in it sent, if it was begun while another was being read', async () => {
    let answer = (): unknown => null;
    gateway.answers.set(
      'chat.history',
      () => new Promise((resolve) => (answer = () => resolve({ messages: [] }))),
    );
    gateway.answers.set('sessions.create', ({ params }) => ({ ok: true, key: params.key }));
    engine.start();
    await until(() => expect(gateway.requests.map(({ method }) => method)).toContain('chat.history'));
    engine.newConversation();
    engine.send('first');
    answer();
    await live();
    await until(() => expect(sent()).toHaveLength(1));
    expect(sent()[0]?.params.sessionKey).toBe(engine.state().conversation);
  });

  it('takes what is said in it even if the gateway says that it cannot be made: it may have been before', async () => {
    gateway.answers.set('sessions.create', () => new Refused({ code: 'INVALID_REQUEST', message: 'exists' }));
    engine.start();
    await live();
    engine.newConversation();
    engine.send('first');
    await until(() => expect(sent()).toHaveLength(1));
    expect(sent()[0]?.params.sessionKey).toBe(engine.state().conversation);
  });

  it('has what is typed at once, and is made before that goes out', async () => {
    let answer = (): unknown => null;
    gateway.answers.set('sessions.create', ({ params }) => {
      return new Promise((resolve) => (answer = () => resolve({ ok: true, key: params.key })));
    });
    engine.start();
    await live();
    engine.newConversation();
    engine.send('first');
    expect(seen()).toEqual(['user sending first']);
    await until(() => expect(gateway.requests.map(({ method }) => method)).toContain('sessions.create'));
    expect(sent()).toEqual([]);
    answer();
    await until(() => expect(sent()).toHaveLength(1));
    expect(sent()[0]?.params.sessionKey).toBe(engine.state().conversation);
    expect(sent()[0]?.params.sessionKey).not.toBe(SESSION);
  });

  it('is made when the connection is there, if it was begun without', async () => {
    gateway.answers.set('sessions.create', ({ params }) => ({ ok: true, key: params.key }));
    engine.newConversation();
    engine.send('early');
    const { conversation } = engine.state();
    expect(seen()).toEqual(['user queued early']);
    engine.start();
    await until(() => expect(sent()).toHaveLength(1));
    const methods = gateway.requests.map(({ method }) => method);
    expect(methods.indexOf('sessions.create')).toBeLessThan(methods.indexOf('chat.send'));
    expect(sent()[0]?.params.sessionKey).toBe(conversation);
  });
});
