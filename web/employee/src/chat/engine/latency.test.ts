// @vitest-environment happy-dom
// Replies read from a history say how long they took, where that can be known.
import { expect, it } from 'vitest';
import { messagesOf } from './openclaw';
import { storedMessages } from './stored';
import { Thread } from './thread';

const T = 1_794_000_000_000;
const user = (timestamp?: number) => ({ role: 'user', content: 'q', timestamp });
const reply = (timestamp?: number, ...parts: object[]) => ({
  role: 'assistant',
  content: [{ type: 'text', text: 'a' }, ...parts],
  timestamp,
});
const latencies = (...messages: object[]) => messagesOf({ messages }).map(({ latencyMs }) => latencyMs);

it('is the time between the prompt and the reply that follows it', () => {
  expect(latencies(user(T), reply(T + 4200))).toEqual([undefined, 4200]);
  expect(latencies(reply(T))).toEqual([undefined]);
  expect(latencies(user(T), reply(T + 10), reply(T + 20))).toEqual([undefined, 10, undefined]);
});

it('of a reply with tools ends with its last piece', () => {
  const call = { type: 'toolCall', id: 't', name: 'read', arguments: {} };
  const result = { role: 'toolResult', toolCallId: 't', content: 'x', timestamp: T + 3000 };
  expect(latencies(user(T), reply(T + 1000, call), result, reply(T + 9000))).toEqual([undefined, 9000]);
});

it('is left out where it is not plausible or a time is missing', () => {
  expect(latencies(user(T), reply(T - 1))).toEqual([undefined, undefined]);
  expect(latencies(user(T), reply(T + 30 * 60_000))).toEqual([undefined, 1_800_000]);
  expect(latencies(user(T), reply(T + 30 * 60_000 + 1))).toEqual([undefined, undefined]);
  expect(latencies(user(), reply(T))).toEqual([undefined, undefined]);
  expect(latencies(user(T), reply())).toEqual([undefined, undefined]);
});

const stored = (role: 'user' | 'assistant', at: number) => ({
  id: `${role}${at}`,
  instance_id: 'i',
  session_key: 'c',
  role,
  content: 'x',
  tokens: 0,
  created_at: new Date(at).toISOString(),
});

it('is known of what the platform stored, also where prompt and reply come on two pages', () => {
  const newer = storedMessages([
    stored('assistant', T + 700),
    stored('user', T + 1000),
    stored('assistant', T + 3000),
  ]);
  expect(newer.map(({ latencyMs }) => latencyMs)).toEqual([undefined, undefined, 2000]);
  const thread = new Thread();
  thread.set({ messages: newer });
  thread.addBefore(storedMessages([stored('user', T)]), 'beginning');
  expect(thread.state().messages.map(({ latencyMs }) => latencyMs)).toEqual([
    undefined,
    700,
    undefined,
    2000,
  ]);
});
