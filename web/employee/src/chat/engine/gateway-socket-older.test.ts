// @vitest-environment happy-dom
// What the socket engine does about messages that are older than its first reading of a conversation.
import { describe, expect, it } from 'vitest';
import { Refused } from './fake-gateway';
import { chat, engine, gateway, lastRun, live, reply, seen, sent, until } from './socket-bench';

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
