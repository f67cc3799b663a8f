// @vitest-environment happy-dom
// What waits in the gateway-chat engine: which of it goes out by itself, where, and what is left to the person.
import { describe, expect, it, vi } from 'vitest';
import { anotherTab } from './another-tab';
import { answering, bench, failing, settle, texts, words } from './gateway-chat-bench';
import type { Attachment } from './types';
import type { Unfinished } from './unfinished';

const FILE: Attachment = { name: 'a.txt', type: 'text/plain', size: 3, content: 'AAAA' };

function left(unfinished: Unfinished, session: string, text: string, files: Attachment[] = []) {
  const { name, type, size } = FILE;
  unfinished.add({
    message: {
      id: text,
      role: 'user',
      text,
      at: 1,
      status: 'queued',
      ...(files.length > 0 && { files: [{ name, type, size }] }),
    },
    session,
    files,
    tried: false,
  });
}

describe('what another engine left', () => {
  it('is delivered; what that one may have delivered waits for the person', async () => {
    const { engine, unfinished, asked } = bench();
    const left = (id: string, tried: boolean) =>
      unfinished.add({
        message: { id, role: 'user', text: id, at: 1, status: 'queued' },
        session: 'main',
        files: [],
        tried,
      });
    left('on its way once', true);
    left('never sent', false);
    engine.start();
    await settle();
    expect(texts(engine)).toEqual([
      'user failed on its way once',
      'user sent never sent',
      'assistant done Hello',
    ]);
    expect(engine.state().messages[0]?.failure?.code).toBe('unsure');
    expect(asked).toHaveLength(1);
    expect(unfinished.waiting()).toEqual([]);
    engine.destroy();
  });

  it('goes out in the conversation it was written in, and in none but that', async () => {
    const before = bench();
    before.engine.start();
    await settle();
    before.engine.send('something else');
    await settle();
    before.engine.destroy();

    const { engine, unfinished, asked } = bench();
    left(unfinished, 'tides', 'about tides');
    left(unfinished, 'moons', 'about moons');
    engine.start();
    await settle();
    expect(engine.state().conversation).toBe('moons');
    expect(texts(engine)).toEqual(['user sent about moons', 'assistant done Hello']);
    expect(asked.at(-1)).toEqual([{ role: 'user', content: 'about moons' }]);

    expect(engine.state().conversations).toContainEqual({ key: 'tides', title: 'about tides', updatedAt: 1 });
    engine.openConversation('tides');
    await settle();
    expect(texts(engine)).toEqual(['user sent about tides', 'assistant done Hello']);
    expect(asked).toHaveLength(2);
    engine.destroy();
  });

  it('is shown as not sent where it has files, and goes without them when it is sent again', async () => {
    const { engine, unfinished, asked } = bench();
    left(unfinished, 'tides', 'look', [FILE]);
    engine.start();
    await settle();
    expect(engine.state().messages).toMatchObject([
      { text: 'look', status: 'failed', failure: { code: 'files' }, files: [{ name: 'a.txt' }] },
    ]);
    expect(asked).toHaveLength(0);
    engine.retry(engine.state().messages[0]?.id ?? '');
    await settle();
    expect(texts(engine)).toEqual(['user sent look', 'assistant done Hello']);
    expect(engine.state().messages[0]?.files).toBeUndefined();
    engine.destroy();
  });
});

describe('what waits for the network', () => {
  /** A prompt that an offline page was closed over. */
  async function closedOver(text: string) {
    const { engine } = bench();
    engine.start();
    await settle();
    window.dispatchEvent(new Event('offline'));
    engine.send(text);
    engine.destroy();
  }

  it('goes out when the same tab comes back', async () => {
    await closedOver('Hi');
    const { engine, asked } = bench();
    engine.start();
    await settle();
    expect(texts(engine)).toEqual(['user sent Hi', 'assistant done Hello']);
    expect(asked).toHaveLength(1);
    engine.destroy();
  });

  it('is not sent by another tab as well, but may be by the person', async () => {
    await closedOver('Hi');
    anotherTab();
    const { engine, asked } = bench();
    engine.start();
    await settle();
    expect(engine.state().messages).toMatchObject([{ status: 'failed', failure: { code: 'unsure' } }]);
    expect(asked).toHaveLength(0);
    engine.retry(engine.state().messages[0]?.id ?? '');
    await settle();
    expect(texts(engine)).toEqual(['user sent Hi', 'assistant done Hello']);
    engine.destroy();
  });

  /** As a page finds it that was just opened beside this one, in its place or not. */
  async function foundByNewPage(conversation: string | null) {
    vi.resetModules();
    const { localThreads } = await import('../local-threads');
    return localThreads('user', 'inst').messages(conversation);
  }

  it.each([
    ['is its own again for a tab that was reloaded', 'pagehide', 'queued'],
    ['is not taken for its own by a tab that was duplicated', 'focus', 'failed'],
  ])('%s', async (_name, event, status) => {
    const { engine } = bench();
    engine.start();
    await settle();
    window.dispatchEvent(new Event('offline'));
    engine.send('Hi');
    window.dispatchEvent(new Event(event));
    expect(await foundByNewPage(engine.state().conversation)).toMatchObject([{ status }]);
    expect(sessionStorage).toHaveLength(0);
    engine.destroy();
  });

  it('is read anew by a page that the browser had put away: another may have sent it', async () => {
    const { engine, asked } = bench();
    engine.start();
    await settle();
    window.dispatchEvent(new Event('offline'));
    engine.send('Hi');
    window.dispatchEvent(new Event('pagehide'));
    anotherTab();
    engine.reconnect();
    await settle();
    expect(asked).toHaveLength(0);
    expect(engine.state().messages).toMatchObject([{ status: 'failed', failure: { code: 'unsure' } }]);
    engine.destroy();
  });

  it('is held by its page where the browser has no room for it', async () => {
    const { engine, asked } = bench();
    engine.start();
    await settle();
    vi.stubGlobal('localStorage', { getItem: () => null });
    window.dispatchEvent(new Event('offline'));
    engine.send('Hi');
    window.dispatchEvent(new Event('pagehide'));
    anotherTab();
    engine.reconnect();
    await settle();
    vi.unstubAllGlobals();
    expect(asked).toHaveLength(1);
    engine.destroy();
  });

  it('does not go out again where the browser knew of no network but the server was reached', async () => {
    const { engine, next, asked } = bench();
    const online = vi.spyOn(navigator, 'onLine', 'get').mockReturnValue(false);
    engine.start();
    await vi.advanceTimersByTimeAsync(8000);
    expect(engine.state().connection.state).toBe('live');
    next(failing('network', 0));
    engine.send('Hi');
    await settle();
    expect(engine.state().messages).toMatchObject([{ status: 'failed', failure: { code: 'unsure' } }]);
    next(answering(...words('Back')));
    await vi.advanceTimersByTimeAsync(8000);
    expect(asked).toHaveLength(1);
    online.mockRestore();
    engine.destroy();
  });
});
