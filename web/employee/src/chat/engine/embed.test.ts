// @vitest-environment happy-dom
// The embedded window's address: it leads in for an hour, and is exchanged before that is over.
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { api } from '../../api';
import { EmbeddedWindow } from './embed';
import type { Hop } from './types';

const MINUTE = 60_000;
let asked: number;
let unusable: Hop[];
let window_: EmbeddedWindow;

function answers(status: () => number) {
  vi.spyOn(api, 'POST').mockImplementation((() => {
    const response = new Response(null, { status: status() });
    if (!response.ok) return Promise.resolve({ error: { code: '4000', data: null, msg: 'x' }, response });
    asked += 1;
    const data = { url: `https://embed.test/e/${asked}/` };
    return Promise.resolve({ data: { code: '0000', data, msg: 'ok' }, response });
  }) as never);
}

beforeEach(() => {
  vi.useFakeTimers();
  asked = 0;
  unusable = [];
  window_ = new EmbeddedWindow('one', {
    onPrompt: () => null,
    onFinal: () => null,
    onUnusable: (hop) => unusable.push(hop),
  });
});

afterEach(() => {
  window_.destroy();
  document.body.innerHTML = '';
  vi.useRealTimers();
  vi.restoreAllMocks();
});

it('is exchanged before the hour is over, and asked for again on request', async () => {
  answers(() => 200);
  window_.start();
  await vi.advanceTimersByTimeAsync(0);
  expect(window_.state().frame).toBe('https://embed.test/e/1/');
  await vi.advanceTimersByTimeAsync(51 * MINUTE);
  expect(window_.state().frame).toBe('https://embed.test/e/2/');
  window_.reconnect();
  await vi.advanceTimersByTimeAsync(0);
  expect(window_.state().frame).toBe('https://embed.test/e/3/');
});

it('stays while somebody writes in it, but not beyond its time', async () => {
  answers(() => 200);
  window_.start();
  await vi.advanceTimersByTimeAsync(0);
  const frame = document.createElement('iframe');
  document.body.append(frame);
  vi.spyOn(document, 'activeElement', 'get').mockReturnValue(frame);
  await vi.advanceTimersByTimeAsync(57 * MINUTE);
  expect(asked).toBe(1);
  await vi.advanceTimersByTimeAsync(2 * MINUTE);
  expect(asked).toBe(2);
});

it('stays open when the exchange fails, and tries again', async () => {
  let status = 200;
  answers(() => status);
  window_.start();
  await vi.advanceTimersByTimeAsync(0);
  status = 503;
  await vi.advanceTimersByTimeAsync(51 * MINUTE);
  expect(window_.state()).toMatchObject({ connection: { state: 'live' }, frame: 'https://embed.test/e/1/' });
  expect(unusable).toEqual([]);
  status = 200;
  await vi.advanceTimersByTimeAsync(MINUTE);
  expect(window_.state().frame).toBe('https://embed.test/e/2/');
});

it.each<[number, Hop]>([
  [403, 'no-embed'],
  [500, 'server'],
  [503, 'instance'],
])('refused with %i it says %s', async (status, hop) => {
  answers(() => status);
  window_.start();
  await vi.advanceTimersByTimeAsync(0);
  expect(unusable).toEqual([hop]);
});

it('is read only where the instance is not one’s own', async () => {
  answers(() => 404);
  window_.start();
  await vi.advanceTimersByTimeAsync(0);
  expect(window_.state().connection).toEqual({ state: 'readonly', hop: 'not-yours' });
});
