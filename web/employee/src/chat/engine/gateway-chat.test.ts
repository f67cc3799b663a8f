// @vitest-environment happy-dom
// The gateway-chat engine against a scripted server: streaming, stopping, failing, waiting, coming back after a reload.
import { ApiError } from '@tidepool/shared/api/envelope';
import { describe, expect, it, vi } from 'vitest';
import { answering, bench, failing, hanging, settle, texts, USAGE, words } from './gateway-chat-bench';
import { isRunning } from './types';

describe('gateway chat', () => {
  it('streams a reply, tells both moments of the dual write, and learns the cost from the log', async () => {
    const { engine, next, prompts, finals, log } = bench();
    engine.start();
    await settle();
    next(answering(...words('Low ', 'tide'), USAGE));
    engine.send('When?');
    await settle();
    expect(texts(engine)).toEqual(['user sent When?', 'assistant done Low tide']);
    expect(prompts.map(({ text }) => text)).toEqual(['When?']);
    expect(finals.map(({ text }) => text)).toEqual(['Low tide']);
    expect(engine.state().messages[1]).toMatchObject({ model: 'gpt-4o', usage: { total: 7, cost: null } });
    log(0.0125);
    await vi.advanceTimersByTimeAsync(3000);
    expect(engine.state().messages[1]?.usage?.cost).toBe(0.0125);
    engine.destroy();
  });

  it('takes no cost of a request that was made before the reply was asked for', async () => {
    const { engine, next, log } = bench();
    engine.start();
    log(0.5);
    await vi.advanceTimersByTimeAsync(5000);
    next(answering(...words('Low tide'), USAGE));
    engine.send('When?');
    await vi.advanceTimersByTimeAsync(3000);
    expect(engine.state().messages[1]?.usage).toMatchObject({ total: 7, cost: null });
    engine.destroy();
  });

  it('sends the conversation along, without what failed', async () => {
    const { engine, next, asked } = bench();
    engine.start();
    await settle();
    engine.send('one');
    await settle();
    next(failing('5020', 502));
    engine.send('two');
    await settle();
    next(answering(...words('Third')));
    engine.send('three');
    await settle();
    expect(asked.at(-1)).toEqual([
      { role: 'user', content: 'one' },
      { role: 'assistant', content: 'Hello' },
      { role: 'user', content: 'three' },
    ]);
    engine.destroy();
  });

  it('stops, keeps what has come, and saves it', async () => {
    const { engine, next, finals } = bench();
    engine.start();
    await settle();
    next(hanging('Half ', 'a '));
    engine.send('Go');
    await settle();
    expect(texts(engine).at(-1)).toBe('assistant streaming Half a ');
    engine.stop();
    await settle();
    expect(texts(engine).at(-1)).toBe('assistant stopped Half a ');
    expect(finals).toHaveLength(1);
    engine.destroy();
  });

  it('saves a prompt when the server has it, not before', async () => {
    const { engine, next, prompts } = bench();
    engine.start();
    await settle();
    let open = (): unknown => null;
    next((_turns, on, signal) => {
      open = on.open;
      return hanging()(_turns, { ...on, open: () => null }, signal);
    });
    engine.send('When?');
    await settle();
    expect(texts(engine)[0]).toBe('user sending When?');
    expect(prompts).toEqual([]);
    open();
    expect(prompts.map(({ text }) => text)).toEqual(['When?']);
    expect(prompts[0]?.id).toBe(engine.state().messages[0]?.id);
    engine.stop();
    await settle();
    expect(prompts).toHaveLength(1);
    next(failing('5020', 502));
    engine.send('Again?');
    await settle();
    expect(prompts).toHaveLength(1);
    engine.destroy();
  });

  it('gives a prompt that is asked again an id of its own', async () => {
    const { engine, prompts } = bench();
    engine.start();
    await settle();
    engine.send('Once more');
    await settle();
    engine.regenerate();
    await settle();
    expect(new Set(prompts.map(({ id }) => id)).size).toBe(2);
    engine.destroy();
  });

  it('names a refusal on the prompt and sends it again on request', async () => {
    const { engine, next } = bench();
    engine.start();
    await settle();
    next(failing('4291', 429));
    engine.send('More');
    await settle();
    expect(engine.state().messages).toMatchObject([{ status: 'failed', failure: { code: '4291' } }]);
    next(answering(...words('Yes')));
    engine.retry(engine.state().messages[0]?.id ?? '');
    await settle();
    expect(texts(engine)).toEqual(['user sent More', 'assistant done Yes']);
    engine.destroy();
  });

  it('asks nothing again by itself that may have arrived, and queues what comes after it', async () => {
    const { engine, next, asked, ping } = bench();
    engine.start();
    await settle();
    next(failing('network', 0));
    ping.mockRejectedValueOnce(new Error('away'));
    engine.send('Hi');
    await settle();
    expect(engine.state().messages).toMatchObject([{ status: 'failed', failure: { code: 'unsure' } }]);
    expect(engine.state().connection).toMatchObject({ state: 'waiting', hop: 'server' });
    next(answering(...words('Back')));
    engine.send('And?');
    await settle();
    expect(texts(engine)).toEqual(['user failed Hi', 'user queued And?']);
    await vi.advanceTimersByTimeAsync(8000);
    expect(engine.state().connection.state).toBe('live');
    expect(texts(engine)).toEqual(['user failed Hi', 'user sent And?', 'assistant done Back']);
    expect(asked.map((turns) => turns.at(-1)?.content)).toEqual(['Hi', 'And?']);
    engine.retry(engine.state().messages[0]?.id ?? '');
    await settle();
    expect(texts(engine).slice(0, 2)).toEqual(['user sent Hi', 'assistant done Back']);
    expect(asked).toHaveLength(3);
    engine.destroy();
  });

  it('queues what an offline device could not send, says when it tries again, and delivers once', async () => {
    const { engine, next, asked } = bench();
    engine.start();
    await settle();
    next(failing('network', 0));
    const online = vi.spyOn(navigator, 'onLine', 'get').mockReturnValue(false);
    engine.send('Hi');
    await settle();
    expect(texts(engine)).toEqual(['user queued Hi']);
    expect(engine.state().connection).toMatchObject({ state: 'waiting', hop: 'offline' });
    online.mockRestore();
    next(answering(...words('Back')));
    await vi.advanceTimersByTimeAsync(8000);
    expect(engine.state().connection.state).toBe('live');
    expect(texts(engine)).toEqual(['user sent Hi', 'assistant done Back']);
    expect(asked).toHaveLength(2);
    engine.destroy();
  });

  it('delivers what was typed before it was started, or waited when the page was closed', async () => {
    const { engine, asked } = bench();
    engine.send('early');
    engine.start();
    await settle();
    expect(texts(engine)).toEqual(['user sent early', 'assistant done Hello']);
    expect(asked).toHaveLength(1);
    engine.destroy();
  });

  it('marks a reply that broke off', async () => {
    const { engine, next, finals } = bench();
    engine.start();
    await settle();
    next((_turns, on) => {
      on.open();
      for (const chunk of words('Some')) on.chunk(chunk);
      return Promise.reject(new ApiError({ code: 'cut', msg: '', status: 0 }));
    });
    engine.send('Go');
    await settle();
    expect(engine.state().messages[1]).toMatchObject({
      text: 'Some',
      status: 'broken',
      failure: { code: 'cut' },
    });
    expect(finals).toHaveLength(0);
    engine.destroy();
  });

  it('ends the stream when it is destroyed, and a later engine finds the half reply', async () => {
    const first = bench();
    first.engine.start();
    await settle();
    first.next(hanging('Half'));
    first.engine.send('Go');
    await settle();
    first.engine.destroy();
    await settle();
    expect(first.finals).toHaveLength(0);

    const second = bench();
    second.engine.start();
    await settle();
    expect(texts(second.engine)).toEqual(['user sent Go', 'assistant broken Half']);
    second.engine.regenerate();
    await settle();
    expect(texts(second.engine)).toEqual(['user sent Go', 'assistant done Hello']);
    second.engine.destroy();
  });

  it('says of a prompt without a word of reply that it was left, and takes no other reply for its own', async () => {
    const first = bench();
    first.engine.start();
    await settle();
    first.engine.send('Before');
    await settle();
    first.next(hanging());
    first.engine.send('Go');
    await settle();
    // A reload: the page goes without a word to the engine but this one.
    window.dispatchEvent(new Event('pagehide'));
    const before = { role: 'user' as const, content: 'Before' };
    const reply = { role: 'assistant' as const, content: 'Hello' };
    const rest = [before, reply, { role: 'user' as const, content: 'Go' }].map((one, index) => ({
      ...one,
      id: String(index),
      instance_id: 'inst',
      tokens: 0,
      session_key: '',
      created_at: '2026-11-15T08:00:00Z',
    }));
    const second = bench(() => Promise.resolve(rest));
    second.engine.start();
    await settle();
    expect(texts(second.engine).slice(-2)).toEqual(['user sent Go', 'assistant broken ']);
    expect(second.engine.state().messages.at(-1)?.failure?.code).toBe('interrupted');
    second.engine.regenerate();
    await settle();
    expect(texts(second.engine).slice(-2)).toEqual(['user sent Go', 'assistant done Hello']);
    second.engine.destroy();
    first.engine.destroy();
  });

  it('completes a half reply from the stored history', async () => {
    const first = bench();
    first.engine.start();
    await settle();
    first.next(hanging('Half'));
    first.engine.send('Go');
    await settle();
    first.engine.destroy();
    const stored = {
      id: '9',
      instance_id: 'inst',
      role: 'assistant' as const,
      content: 'Half and whole',
      tokens: 3,
      session_key: '',
      created_at: '2026-11-15T08:00:00Z',
    };
    const second = bench(() => Promise.resolve([stored]));
    second.engine.start();
    await settle();
    expect(texts(second.engine).at(-1)).toBe('assistant done Half and whole');
    second.engine.destroy();
  });

  it('edits a prompt by replacing what came after it', async () => {
    const { engine } = bench();
    engine.start();
    await settle();
    engine.send('first');
    await settle();
    engine.send('second');
    await settle();
    engine.edit(engine.state().messages[0]?.id ?? '', 'changed');
    await settle();
    expect(texts(engine)).toEqual(['user sent changed', 'assistant done Hello']);
    engine.destroy();
  });

  it('can be stopped while something waits behind the reply, which then goes out', async () => {
    const { engine, next, asked } = bench();
    engine.start();
    await settle();
    next(hanging('Half'));
    engine.send('long');
    await settle();
    engine.send('next');
    expect(isRunning(engine.state())).toBe(true);
    next(answering(...words('Short')));
    engine.stop();
    await settle();
    expect(texts(engine)).toEqual([
      'user sent long',
      'assistant stopped Half',
      'user sent next',
      'assistant done Short',
    ]);
    expect(asked).toHaveLength(2);
    expect(isRunning(engine.state())).toBe(false);
    engine.destroy();
  });

  it('keeps what waits behind a reply that is stopped before its first word', async () => {
    const { engine, next } = bench();
    engine.start();
    await settle();
    next(hanging());
    engine.send('long');
    await settle();
    engine.send('next');
    next(answering(...words('Short')));
    engine.stop();
    await settle();
    expect(texts(engine)).toEqual(['user sent long', 'user sent next', 'assistant done Short']);
    engine.destroy();
  });

  it('ends the stream of a reply whose prompt is changed, whatever stands after it', async () => {
    const { engine, next } = bench();
    engine.start();
    await settle();
    let ended = false;
    next((turns, on, signal) => {
      signal.addEventListener('abort', () => (ended = true));
      return hanging('Half')(turns, on, signal);
    });
    engine.send('long');
    await settle();
    engine.send('next');
    next(answering(...words('Short')));
    engine.edit(engine.state().messages[0]?.id ?? '', 'short');
    await settle();
    expect(ended).toBe(true);
    expect(texts(engine)).toEqual(['user sent short', 'assistant done Short']);
    engine.destroy();
  });

  it('keeps conversations apart and lists them by their first words', async () => {
    const { engine } = bench();
    engine.start();
    await settle();
    engine.send('About tides\nand more');
    await settle();
    const { conversation } = engine.state();
    engine.newConversation();
    expect(engine.state().messages).toEqual([]);
    engine.send('About moons');
    await settle();
    expect(
      engine
        .state()
        .conversations.map(({ title }) => title)
        .sort(),
    ).toEqual(['About moons', 'About tides']);
    engine.openConversation(conversation);
    await settle();
    expect(texts(engine)[0]).toBe('user sent About tides\nand more');
    engine.destroy();
  });

  it('goes on with the last conversation of another browser, and lists those beside its own', async () => {
    const said = {
      id: '1',
      instance_id: 'inst',
      tokens: 0,
      session_key: 'late',
      created_at: '2026-11-15T09:00:00Z',
    };
    const { engine } = bench(
      (key) =>
        Promise.resolve(key === 'late' ? [{ ...said, role: 'user', content: 'From the other one' }] : []),
      () =>
        Promise.resolve([
          { key: 'late', title: '', updatedAt: 2 },
          { key: 'early', title: '', updatedAt: 1 },
        ]),
    );
    engine.start();
    engine.send('typed before the list came');
    await settle();
    expect(engine.state().conversation).toBe('late');
    expect(texts(engine)[0]).toBe('user sent From the other one');
    expect(texts(engine)[1]).toBe('user sent typed before the list came');
    await settle();
    expect(engine.state().conversations.map(({ key }) => key)).toEqual(['late', 'early']);
    engine.destroy();
  });

  it('keeps to its own conversations when the server’s list fails', async () => {
    const { engine } = bench(undefined, () => Promise.reject(new Error('no list')));
    engine.start();
    await settle();
    engine.send('About tides');
    await settle();
    expect(engine.state().conversations.map(({ title }) => title)).toEqual(['About tides']);
    engine.destroy();
  });
});
