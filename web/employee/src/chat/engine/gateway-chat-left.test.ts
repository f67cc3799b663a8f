// @vitest-environment happy-dom
// What a gateway-chat engine does once it is left, and what it leaves on the machine.
import { ApiError } from '@tidepool/shared/api/envelope';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { session } from '../../api';
import { forgetThreads } from '../local-threads';
import { bench, hanging, settle, texts, words } from './gateway-chat-bench';

async function streaming(text = 'Go') {
  const made = bench();
  made.engine.start();
  await settle();
  made.next(hanging('Half'));
  made.engine.send(text);
  await settle();
  return made;
}

describe('a gateway chat that is left', () => {
  afterEach(() => session.start('token'));

  it('sends nothing any more: what waited is asked once, by the engine after it', async () => {
    const first = await streaming();
    first.engine.send('And then?');
    first.engine.destroy();
    await settle();
    expect(first.asked).toHaveLength(1);

    const second = bench();
    second.engine.start();
    await settle();
    expect(second.asked.map((turns) => turns.at(-1)?.content)).toEqual(['And then?']);
    expect(texts(second.engine)).toEqual([
      'user sent Go',
      'assistant broken Half',
      'user sent And then?',
      'assistant done Hello',
    ]);
    second.engine.destroy();
  });

  it('has half a reply, and no failure, where the stream ends just before the page goes', async () => {
    const first = bench();
    first.engine.start();
    await settle();
    let cut = (): unknown => null;
    first.next((_turns, on) => {
      on.open();
      for (const chunk of words('Half')) on.chunk(chunk);
      return new Promise((_resolve, reject) => {
        cut = () => reject(new ApiError({ code: 'cut', msg: '', status: 0 }));
      });
    });
    first.engine.send('Go');
    await settle();
    cut();
    await vi.advanceTimersByTimeAsync(30);
    window.dispatchEvent(new Event('pagehide'));
    const second = bench();
    second.engine.start();
    await settle();
    expect(texts(second.engine)).toEqual(['user sent Go', 'assistant broken Half']);
    expect(second.engine.state().messages.map(({ failure }) => failure)).toEqual([undefined, undefined]);
    second.engine.destroy();
    first.engine.destroy();
  });

  it('writes nothing over what the engine after it has kept', async () => {
    const first = bench();
    first.engine.start();
    await settle();
    let end = (): unknown => null;
    first.next((_turns, on) => {
      on.open();
      return new Promise((_resolve, reject) => (end = () => reject(new Error('late'))));
    });
    first.engine.send('Go');
    await settle();
    first.engine.destroy();

    const second = bench();
    second.engine.start();
    await settle();
    second.engine.send('Later');
    await settle();
    second.engine.destroy();
    end();
    await settle();
    const third = bench();
    third.engine.start();
    await settle();
    expect(texts(third.engine)).toContain('user sent Later');
    third.engine.destroy();
  });

  it('writes nothing that it only read over what another tab has said since', async () => {
    const tabs = [bench(), bench()] as const;
    tabs[0].engine.start();
    await settle();
    tabs[0].engine.send('One');
    await settle();
    tabs[1].engine.start();
    await settle();
    tabs[0].engine.send('Two');
    await settle();
    for (const { engine } of tabs) engine.destroy();
    const later = bench();
    later.engine.start();
    await settle();
    expect(texts(later.engine)).toContain('user sent Two');
    later.engine.destroy();
  });

  it('sends nothing when the server is there again only after it was left', async () => {
    const { engine, asked, ping } = bench();
    engine.start();
    await settle();
    let reached = (): unknown => null;
    ping.mockImplementation(() => new Promise((resolve) => (reached = () => resolve(null))));
    window.dispatchEvent(new Event('offline'));
    engine.send('Waits');
    engine.reconnect();
    engine.destroy();
    reached();
    await settle();
    expect(asked).toHaveLength(0);
  });

  it('leaves nothing on the machine of somebody who has signed out', async () => {
    session.start('token');
    const { engine } = await streaming();
    session.end('signed-out');
    forgetThreads();
    engine.destroy();
    await settle();
    expect(Object.keys(localStorage).filter((key) => key.startsWith('tidepool.chat.'))).toEqual([]);
  });

  it('has written down that a prompt is on its way: a page that vanishes does not make it be asked again', async () => {
    const first = await streaming();
    const second = bench();
    second.engine.start();
    await settle();
    expect(second.asked).toHaveLength(0);
    expect(texts(second.engine)).toEqual(['user failed Go']);
    second.engine.destroy();
    first.engine.destroy();
  });
});
