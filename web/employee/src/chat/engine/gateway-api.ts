// What the gateway-chat engine asks of the server, apart from the engine so that tests can stand in for it.
import type { components } from '@tidepool/shared/api/employee.gen';
import { ApiError, unwrap } from '@tidepool/shared/api/envelope';
import { readEvents } from '@tidepool/shared/live/sse';
import { account, api } from '../../api';
import { requestCosts, type Costs } from './request-costs';
import type { Conversation } from './types';

export type HistoryMessage = components['schemas']['Message'];

export interface Turn {
  role: 'user' | 'assistant';
  content: string;
}

/** One piece of the streamed answer, in the chat-completions shape. */
export interface Chunk {
  model?: string;
  choices?: {
    delta?: {
      content?: string | null;
      reasoning_content?: string | null;
      tool_calls?: { index?: number; id?: string; function?: { name?: string; arguments?: string } }[];
    };
    finish_reason?: string | null;
  }[];
  usage?: { prompt_tokens: number; completion_tokens: number; total_tokens: number } | null;
}

export interface GatewayApi {
  /** Resolves when the stream has ended with `[DONE]`; an ApiError says why it did not. */
  ask: (
    turns: Turn[],
    on: { open: () => void; chunk: (chunk: Chunk) => void },
    signal: AbortSignal,
  ) => Promise<void>;
  /** The newest, or those before the message with that id; newest last. A page that is not full is the last one. */
  history: (conversation: string | null, before?: string) => Promise<HistoryMessage[]>;
  /** Those that the server keeps messages of, whichever browser they were held in; it knows no titles. */
  conversations: () => Promise<Conversation[]>;
  costs: Costs;
  ping: () => Promise<unknown>;
}

export const HISTORY_SIZE = 50;
const CONVERSATIONS_SIZE = 100;

export function gatewayApi(instance: string): GatewayApi {
  return {
    async ask(turns, on, signal) {
      const body = {
        instance_id: instance,
        messages: turns as unknown as Record<string, never>[],
        stream: true,
      };
      let answer;
      try {
        answer = await api.POST('/me/chat', { body, parseAs: 'stream', signal });
      } catch (cause) {
        if (signal.aborted) throw cause;
        throw new ApiError({ code: 'network', msg: String(cause), status: 0 });
      }
      if (!answer.response.ok) {
        await unwrap(Promise.resolve(answer as never));
        return;
      }
      on.open();
      const stream: ReadableStream<Uint8Array> | null = answer.data ?? null;
      const end = { whole: false, refused: null as ApiError | null };
      try {
        if (stream !== null)
          await readEvents(stream, ({ event, data }) => {
            if (event === 'error') end.refused = envelopeError(data, answer.response.status);
            else if (data === '[DONE]') end.whole = true;
            else on.chunk(JSON.parse(data) as Chunk);
          });
      } catch (cause) {
        if (signal.aborted) throw cause;
        throw new ApiError({ code: 'cut', msg: String(cause), status: 0 });
      }
      if (end.refused !== null) throw end.refused;
      if (!end.whole) throw new ApiError({ code: 'cut', msg: 'the stream ended early', status: 0 });
    },

    async history(conversation, before) {
      const query = {
        instance_id: instance,
        size: HISTORY_SIZE,
        ...(conversation && { session_key: conversation }),
        ...(before !== undefined && { before }),
      };
      const page = await unwrap(api.GET('/me/chat/history', { params: { query } }));
      return page.messages.toReversed();
    },

    async conversations() {
      const query = { instance_id: instance, size: CONVERSATIONS_SIZE };
      const { list } = await unwrap(api.GET('/me/chat/conversations', { params: { query } }));
      return list
        .filter((one) => one.session_key !== '')
        .map((one) => ({ key: one.session_key, title: '', updatedAt: Date.parse(one.last_message_at) }));
    },

    costs: requestCosts(instance),
    ping: () => account.options(),
  };
}

function envelopeError(data: string, status: number): ApiError {
  try {
    const { code, msg } = JSON.parse(data) as { code: string; msg: string };
    return new ApiError({ code, msg, status });
  } catch {
    return new ApiError({ code: 'malformed', msg: data, status });
  }
}
