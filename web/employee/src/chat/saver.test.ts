// @vitest-environment happy-dom
// What the dual write calls a message: a repeat, from whichever tab, must be recognised.
import { afterEach, expect, it, vi } from 'vitest';
import { api } from '../api';
import { newId } from './engine/ids';
import type { Message } from './engine/types';
import { Saver } from './saver';

function saves(): { client_id: string }[] {
  const bodies: { client_id: string }[] = [];
  vi.spyOn(api, 'POST').mockImplementation(((_path: string, { body }: { body: { client_id: string } }) => {
    bodies.push(body);
    return Promise.resolve({ data: { code: '0000', data: null, msg: 'ok' }, response: new Response() });
  }) as never);
  return bodies;
}

const prompt: Message = { id: newId(), role: 'user', text: 'hi', at: 0, status: 'sent' };
const reply = (id: string): Message => ({
  id,
  role: 'assistant',
  text: 'hello',
  at: 0,
  status: 'done',
  run: prompt.id,
});

afterEach(() => {
  vi.restoreAllMocks();
});

it('a prompt is called by its own id, a reply by its run in every tab', () => {
  const bodies = saves();
  const [here, there] = [new Saver('one'), new Saver('one')];
  here.save(prompt, null);
  here.save(reply('streamed'), null);
  there.save(reply('from the history'), null);
  const ids = bodies.map((body) => body.client_id);
  expect(ids[0]).toBe(prompt.id);
  expect(ids[1]).toMatch(/^[0-9a-f-]{36}$/);
  expect(ids[2]).toBe(ids[1]);
  expect(ids[1]).not.toBe(ids[0]);
});

it('what could not be saved is marked, and goes out again under the same name', async () => {
  const bodies = saves();
  vi.mocked(api.POST).mockRejectedValueOnce(new TypeError('away'));
  const saver = new Saver('one');
  saver.save(prompt, null);
  await vi.waitFor(() => expect(saver.state().get(prompt.id)).toBe('failed'));
  saver.retry(prompt.id);
  await vi.waitFor(() => expect(saver.state().size).toBe(0));
  expect(bodies.map((body) => body.client_id)).toEqual([prompt.id]);
});
