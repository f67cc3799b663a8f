// @vitest-environment happy-dom
// What an engine could not deliver is delivered once by another, whatever is opened, chosen or renewed meanwhile.
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { act, useEffect } from 'react';
import { createRoot, type Root } from 'react-dom/client';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { Instance } from '../instances-query';
import type { GatewayApi } from './engine/gateway-api';
import { HopError, type Dialled } from './engine/socket-link';
import { forgetUnfinished } from './engine/unfinished';
import { useChat, type Chat } from './use-chat';

const asked: string[] = [];
let dial: () => Promise<Dialled>;

vi.mock('../api', () => ({
  api: { GET: () => new Promise(() => null), POST: () => new Promise(() => null) },
  session: { state: () => ({ endReason: null }) },
}));
vi.mock('./engine/dial', () => ({ dialler: () => () => dial(), diagnose: () => Promise.resolve('server') }));
vi.mock('./engine/gateway-api', () => ({
  HISTORY_SIZE: 50,
  gatewayApi: (instance: string): GatewayApi => ({
    ask: (turns, on) => {
      asked.push(`${instance} ${turns.at(-1)?.content}`);
      on.open();
      return Promise.resolve();
    },
    history: () => Promise.resolve([]),
    conversations: () => Promise.resolve([]),
    costs: () => Promise.resolve(new Map()),
    ping: () => Promise.resolve(null),
  }),
}));

let root: Root;
let chat: Chat;
const queries = new QueryClient();

function Probe({ instance }: { instance: Instance }) {
  const current = useChat('ada', instance);
  useEffect(() => {
    chat = current;
  });
  return null;
}

beforeEach(() => {
  vi.stubGlobal('IS_REACT_ACT_ENVIRONMENT', true);
  vi.useFakeTimers();
  asked.length = 0;
  document.body.innerHTML = '<main></main>';
  root = createRoot(document.body.firstElementChild ?? document.body);
});

afterEach(() => {
  act(() => root.unmount());
  localStorage.clear();
  sessionStorage.clear();
  forgetUnfinished();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const pass = (ms: number) => act(() => vi.advanceTimersByTimeAsync(ms));

async function open(id: string, gateway_token = 'token') {
  const instance = { id, gateway_url: '', gateway_token } as Instance;
  act(() =>
    root.render(
      <QueryClientProvider client={queries}>
        <Probe instance={instance} />
      </QueryClientProvider>,
    ),
  );
  await pass(50);
}

it('sends what a fallback has taken over once, however often one comes back to the instance', async () => {
  dial = () => Promise.reject(new HopError('instance'));
  await open('a');
  chat.engine.send('hello');
  await pass(5000);
  expect(chat.fallback).toBe('instance');
  expect(asked).toEqual(['a hello']);
  dial = () => new Promise(() => null);
  await open('b');
  await open('a');
  await open('a', 'renewed');
  await pass(5000);
  expect(asked).toEqual(['a hello']);
});

it('hands over what waits when the person chooses another way, once', async () => {
  dial = () => new Promise(() => null);
  await open('a');
  chat.engine.send('hello');
  act(() => chat.prefer('gateway'));
  await pass(1000);
  expect(asked).toEqual(['a hello']);
  act(() => chat.prefer('socket'));
  await pass(50);
  act(() => chat.prefer('gateway'));
  await pass(1000);
  expect(asked).toEqual(['a hello']);
});

it('keeps what waits while another instance is open, or a renewed token makes the engine anew', async () => {
  dial = () => new Promise(() => null);
  await open('a');
  chat.engine.send('hello');
  await open('b');
  expect(chat.state.messages).toEqual([]);
  await open('a');
  expect(chat.state.messages).toMatchObject([{ text: 'hello', status: 'queued' }]);
  await open('a', 'renewed');
  expect(chat.state.messages).toMatchObject([{ text: 'hello', status: 'queued' }]);
});

/** One that opens at once, and answers everything with nothing. */
class LiveSocket extends EventTarget {
  readonly readyState = 1;
  readonly bufferedAmount = 0;
  constructor() {
    super();
    queueMicrotask(() => this.dispatchEvent(new Event('open')));
  }
  send(text: string) {
    const { id } = JSON.parse(text) as { id: string };
    const data = JSON.stringify({ type: 'res', id, ok: true, payload: {} });
    queueMicrotask(() => this.dispatchEvent(new MessageEvent('message', { data })));
  }
  close() {
    return null;
  }
}

it('sends nothing behind the back of somebody who has gone on another way since', async () => {
  vi.stubGlobal('WebSocket', LiveSocket);
  dial = () => Promise.resolve({ url: 'ws://gateway' });
  await open('a');
  act(() => chat.prefer('gateway'));
  await pass(50);
  window.dispatchEvent(new Event('offline'));
  act(() => chat.engine.send('hello'));
  act(() => chat.prefer('socket'));
  await pass(50);
  expect(chat.state.connection.state).toBe('live');
  act(() => chat.prefer('gateway'));
  await pass(1000);
  expect(asked).toEqual([]);
  expect(chat.state.messages).toMatchObject([{ text: 'hello', status: 'failed' }]);
});
