// A gateway-chat engine at a scripted server, with time of its own, and what its tests say again and again.
import { ApiError } from '@tidepool/shared/api/envelope';
import { afterEach, beforeEach, vi } from 'vitest';
import { forgetThreads, localThreads } from '../local-threads';
import type { Chunk, GatewayApi, Turn } from './gateway-api';
import { GatewayChat } from './gateway-chat';
import { costsOf } from './request-costs';
import type { EngineEvents, Message } from './types';
import { Unfinished } from './unfinished';

export type Ask = GatewayApi['ask'];

export function words(...texts: string[]): Chunk[] {
  return texts.map((content) => ({ model: 'gpt-4o', choices: [{ delta: { content } }] }));
}

export const USAGE: Chunk = {
  choices: [],
  usage: { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 },
};

export function answering(...chunks: Chunk[]): Ask {
  return (_turns, on) => {
    on.open();
    for (const chunk of chunks) on.chunk(chunk);
    return Promise.resolve();
  };
}

/** Answers with some words and then hangs until it is aborted. */
export function hanging(...texts: string[]): Ask {
  return (_turns, on, signal) => {
    on.open();
    for (const chunk of words(...texts)) on.chunk(chunk);
    return new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(new DOMException('stopped', 'AbortError')));
    });
  };
}

export function failing(code: string, status: number): Ask {
  return () => Promise.reject(new ApiError({ code, msg: `msg ${code}`, status }));
}

export interface Bench {
  engine: GatewayChat;
  unfinished: Unfinished;
  asked: Turn[][];
  prompts: Message[];
  finals: Message[];
  next: (ask: Ask) => void;
  ping: ReturnType<typeof vi.fn<() => Promise<unknown>>>;
  /** The request log gets a line, now, with the numbers of `USAGE`. */
  log: (cost: number) => void;
}

export function bench(
  history: GatewayApi['history'] = () => Promise.resolve([]),
  conversations: GatewayApi['conversations'] = () => Promise.resolve([]),
): Bench {
  const asked: Turn[][] = [];
  const prompts: Message[] = [];
  const finals: Message[] = [];
  const ping = vi.fn(() => Promise.resolve<unknown>(null));
  const rows: Parameters<typeof costsOf>[1][number][] = [];
  let current: Ask = answering(...words('Hello'));
  const api: GatewayApi = {
    ask: (turns, on, signal) => {
      asked.push(turns);
      return current(turns, on, signal);
    },
    history,
    conversations,
    costs: (replies) => Promise.resolve(costsOf(replies, rows)),
    ping,
  };
  const events: EngineEvents = {
    onPrompt: (message) => prompts.push(message),
    onFinal: (message) => finals.push(message),
    onUnusable: () => null,
  };
  const unfinished = new Unfinished();
  const engine = new GatewayChat(api, localThreads('user', 'inst'), events, unfinished);
  const log = (cost: number) =>
    rows.unshift({
      time: new Date().toISOString(),
      instance_id: 'inst',
      model: 'gpt-4o',
      prompt_tokens: 5,
      completion_tokens: 2,
      cost_usd: cost,
      latency_ms: 1,
      status: 'success',
      is_stream: true,
      estimated: false,
    });
  return { engine, unfinished, asked, prompts, finals, next: (ask) => (current = ask), ping, log };
}

export const texts = (engine: GatewayChat) =>
  engine.state().messages.map(({ role, text, status }) => `${role} ${status} ${text}`);

beforeEach(() => {
  forgetThreads();
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});
export const settle = () => vi.advanceTimersByTimeAsync(300);
