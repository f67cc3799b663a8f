// @vitest-environment happy-dom
// What the socket engine does for a conversation that is not the open one: nothing written is lost, nothing said is unsaved.
import { describe, expect, it } from 'vitest';
import { Refused, type Answer } from './fake-gateway';
import {
  chat,
  engine,
  finals,
  finalsIn,
  gateway,
  lastRun,
  live,
  prompts,
  reply,
  seen,
  sent,
  SESSION,
  until,
} from './socket-bench';

const OTHER = 'agent:main:other';

/** A gateway that keeps what is sent to it, and what else `said` has; `running` is not over yet. */
function remembering(said: object[] = [], running: { run?: string; startedAt?: number } = {}): Answer {
  return ({ params }) => ({
    messages:
      params.sessionKey === SESSION
        ? [
            ...sent()
              .filter(({ params }) => params.sessionKey === SESSION && params.message !== 'refused')
              .map((one) => ({
                role: 'user',
                content: one.params.message,
                idempotencyKey: `${String(one.params.idempotencyKey)}:user`,
                timestamp: 1,
              })),
            ...said,
          ]
        : [],
    sessionInfo: { hasActiveRun: params.sessionKey === SESSION && running.run !== undefined },
    ...(params.sessionKey === SESSION &&
      running.run !== undefined && {
        inFlightRun: { runId: running.run, text: 'on', startedAt: running.startedAt ?? 1 },
      }),
  });
}

async function streaming() {
  engine.start();
  await live();
  engine.send('count');
  await until(() => expect(sent()).toHaveLength(1));
  chat(lastRun(), { state: 'delta', message: reply('one') });
  await until(() => expect(seen().at(-1)).toBe('assistant streaming one'));
  return lastRun();
}

async function opened(key: string) {
  engine.openConversation(key);
  await until(() => expect(engine.state()).toMatchObject({ conversation: key, loaded: true }));
}

describe('conversations that are not open', () => {
  it('keep a prompt that waits, and it goes out where it was written', async () => {
    engine.send('for main');
    engine.openConversation(OTHER);
    expect(seen()).toEqual([]);
    engine.openConversation(SESSION);
    expect(seen()).toEqual(['user queued for main']);
    engine.openConversation(OTHER);
    engine.start();
    await live();
    await until(() => expect(prompts.map(({ text }) => text)).toEqual(['for main']));
    expect(sent().map(({ params }) => params.sessionKey)).toEqual([SESSION]);
    expect(seen()).toEqual([]);
    gateway.answers.set('chat.history', remembering());
    await opened(SESSION);
    expect(seen()).toEqual(['user sent for main']);
    expect(sent()).toHaveLength(1);
  });

  it('keep a prompt that was refused, to be sent again', async () => {
    gateway.hello = { policy: { maxPayload: 300 } };
    engine.start();
    await live();
    engine.send('x'.repeat(400));
    await until(() => expect(engine.state().messages[0]?.status).toBe('failed'));
    await opened(OTHER);
    expect(seen()).toEqual([]);
    await opened(SESSION);
    expect(engine.state().messages).toMatchObject([{ status: 'failed', failure: { code: '4130' } }]);
    expect(sent()).toHaveLength(0);
  });

  it('keep a refused prompt where it was said: a reply that runs is still the last', async () => {
    const running = { run: await streaming() };
    gateway.answers.set('chat.send', () => new Refused({ code: 'UNAVAILABLE', message: 'busy' }));
    engine.send('refused');
    await until(() => expect(seen().at(-1)).toBe('user failed refused'));
    const later = { startedAt: Date.now() + 1000 };
    gateway.answers.set('chat.history', remembering([], { ...running, ...later }));
    await opened(OTHER);
    await opened(SESSION);
    expect(seen()).toEqual(['user sent count', 'user failed refused', 'assistant streaming on']);
  });

  it('have a reply saved that ends meanwhile', async () => {
    const run = await streaming();
    await opened(OTHER);
    chat(run, { state: 'delta', message: reply('one two') });
    chat(run, { state: 'final', message: reply('one two three') });
    await until(() => expect(finals).toMatchObject([{ text: 'one two three', status: 'done', run }]));
    expect(finalsIn).toEqual([SESSION]);
    expect(seen()).toEqual([]);
    gateway.answers.set('chat.history', remembering([reply('one two three')]));
    await opened(SESSION);
    expect(seen()).toEqual(['user sent count', 'assistant done one two three']);
    expect(finals).toHaveLength(1);
  });

  it('have as much saved as was seen of a reply that was stopped', async () => {
    const run = await streaming();
    engine.stop();
    await opened(OTHER);
    chat(run, { state: 'aborted' });
    await until(() => expect(finals).toMatchObject([{ text: 'one', status: 'stopped', run }]));
  });

  it('have a reply saved whose end comes as they are left', async () => {
    const run = await streaming();
    let answer = (): unknown => null;
    gateway.answers.set('chat.history', ({ params }) =>
      params.limit === 4
        ? new Promise((resolve) => (answer = () => resolve({ messages: [] })))
        : { messages: [] },
    );
    chat(run, { state: 'final', message: reply('one two') });
    await until(() => expect(seen().at(-1)).toBe('assistant done one two'));
    await opened(OTHER);
    answer();
    await until(() => expect(finals).toMatchObject([{ text: 'one two', run }]));
    expect(finalsIn).toEqual([SESSION]);
  });

  it.each(['on the way back to them', 'when the connection is back'])(
    'have a reply saved whose end nobody heard: %s',
    async (when) => {
      const run = await streaming();
      await opened(OTHER);
      gateway.answers.set('chat.history', remembering([reply('one two')]));
      if (when === 'on the way back to them') await opened(SESSION);
      else {
        gateway.cut();
        await until(() => expect(engine.state().connection.state).toBe('waiting'));
        await live();
      }
      await until(() => expect(finals).toMatchObject([{ text: 'one two', run }]));
      expect(finalsIn).toEqual([SESSION]);
    },
  );

  it('have nothing saved of a reply that goes on, nor another reply in its place', async () => {
    const running = { run: await streaming() };
    gateway.answers.set('chat.history', remembering([reply('an earlier step')], running));
    await opened(OTHER);
    await opened(SESSION);
    expect(seen().at(-1)).toBe('assistant streaming on');
    // The gateway may not have written down yet what it was asked.
    gateway.answers.set('chat.history', () => ({
      messages: [{ role: 'user', content: 'before', timestamp: 1 }, reply('another reply')],
      sessionInfo: { hasActiveRun: false },
    }));
    await opened(OTHER);
    await opened(SESSION);
    expect(finals).toEqual([]);
  });

  it('have nothing saved that was begun by others', async () => {
    await streaming();
    gateway.say('chat', { runId: 'x', sessionKey: OTHER, state: 'final', message: reply('not ours') });
    chat(lastRun(), { state: 'final', message: reply('ours') });
    await until(() => expect(finals.map(({ text }) => text)).toEqual(['ours']));
  });

  it('get the answer to a prompt that comes late; the open one gets nothing of it', async () => {
    engine.start();
    await live();
    let answer = (): unknown => null;
    gateway.answers.set(
      'chat.send',
      ({ params }) =>
        new Promise(
          (resolve) => (answer = () => resolve({ runId: params.idempotencyKey, status: 'started' })),
        ),
    );
    engine.send('slow');
    await until(() => expect(sent()).toHaveLength(1));
    await opened(OTHER);
    answer();
    await until(() => expect(prompts.map(({ text }) => text)).toEqual(['slow']));
    expect(seen()).toEqual([]);
    chat(lastRun(), { state: 'final', message: reply('done') });
    await until(() => expect(finals.map(({ text }) => text)).toEqual(['done']));
    expect(finalsIn).toEqual([SESSION]);
    expect(seen()).toEqual([]);
    expect(sent()).toHaveLength(1);
  });
});
