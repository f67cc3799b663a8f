// @vitest-environment happy-dom
// The gateway-chat engine and what is older: fetched page by page, joined to what this browser kept.
import { describe, expect, it } from 'vitest';
import { localThreads } from '../local-threads';
import type { GatewayApi } from './gateway-api';
import { bench, settle } from './gateway-chat-bench';
import type { Message } from './types';

describe('gateway chat, what is older', () => {
  /** The server's history of so many messages, page by page; how it was asked is remembered. */
  function stored(size: number) {
    const all = Array.from({ length: size }, (_, index) => ({
      id: `s${index}`,
      instance_id: 'inst',
      role: index % 2 === 0 ? ('user' as const) : ('assistant' as const),
      content: `m${index}`,
      tokens: 0,
      session_key: 'c',
      created_at: new Date(1_794_000_000_000 + index * 1000).toISOString(),
    }));
    const befores: (string | undefined)[] = [];
    const history: GatewayApi['history'] = (_conversation, before) => {
      befores.push(before);
      const end = before === undefined ? size : all.findIndex(({ id }) => id === before);
      return Promise.resolve(all.slice(Math.max(0, end - 50), end));
    };
    return { all, befores, history };
  }
  const elsewhere = () => Promise.resolve([{ key: 'c', title: '', updatedAt: 1 }]);

  it('brings older messages page by page, until the conversation begins', async () => {
    const { befores, history } = stored(120);
    const { engine } = bench(history, elsewhere);
    engine.start();
    await settle();
    expect(engine.state().older).toBe('more');
    engine.loadOlder();
    expect(engine.state().older).toBe('loading');
    await settle();
    expect(engine.state().older).toBe('more');
    engine.loadOlder();
    await settle();
    expect(engine.state().messages.map(({ text }) => text)).toEqual(
      Array.from({ length: 120 }, (_, index) => `m${index}`),
    );
    expect(engine.state().older).toBe('beginning');
    engine.loadOlder();
    expect(befores).toEqual([undefined, 's70', 's20']);
    engine.destroy();
  });

  it('says that older messages could not be had, and asks again', async () => {
    const { history } = stored(60);
    let broken = false;
    const { engine } = bench(
      (...asked) => (broken ? Promise.reject(new Error('no')) : history(...asked)),
      elsewhere,
    );
    engine.start();
    await settle();
    broken = true;
    engine.loadOlder();
    await settle();
    expect(engine.state().older).toBe('failed');
    expect(engine.state().messages).toHaveLength(50);
    broken = false;
    engine.loadOlder();
    await settle();
    expect(engine.state().messages).toHaveLength(60);
    engine.destroy();
  });

  it('finds where what this browser kept begins in what the server has', async () => {
    const { all, befores, history } = stored(200);
    const kept = all.slice(-60).map(({ role, content, created_at }, index): Message => ({
      id: `own-${index}`,
      role,
      // The server never got the first one as it stands here.
      text: index === 0 ? 'not saved' : content,
      at: Date.parse(created_at) + 300,
      status: role === 'user' ? 'sent' : 'done',
    }));
    localThreads('user', 'inst').keep('c', kept);
    const { engine } = bench(history);
    engine.start();
    await settle();
    expect(engine.state()).toMatchObject({ older: 'more', conversation: 'c' });
    engine.loadOlder();
    await settle();
    const found = engine.state().messages.map(({ text }) => text);
    expect(found.slice(-61)).toEqual(['m140', 'not saved', ...all.slice(-59).map(({ content }) => content)]);
    expect(new Set(found).size).toBe(found.length);
    expect(befores).toEqual([undefined, 's150']);
    engine.destroy();
  });

  it('does not offer older messages where all is here', async () => {
    const { history } = stored(49);
    const { engine } = bench(history, elsewhere);
    engine.start();
    await settle();
    expect(engine.state()).toMatchObject({ older: 'nothing', loaded: true });
    engine.destroy();
  });

  it('a conversation that is opened before the list is there stays open', async () => {
    const asked: (string | null)[] = [];
    const { engine } = bench(
      (conversation) => {
        asked.push(conversation);
        return Promise.resolve([]);
      },
      () => Promise.resolve([{ key: 'newest', title: '', updatedAt: 1 }]),
    );
    engine.start();
    engine.openConversation('chosen');
    await settle();
    expect(engine.state().conversation).toBe('chosen');
    expect(asked).toEqual(['chosen']);
    engine.destroy();
  });
});
