// How long a reply took that nobody watched: from the prompt before it until it was stored.
import type { Message } from './types';

/** Longer than this somebody waited for something else. */
const LONGEST_MS = 30 * 60_000;

export function latencyOf(prompt: Message | undefined, end: number): number | undefined {
  if (prompt?.role !== 'user' || prompt.at === 0) return undefined;
  const took = end - prompt.at;
  return took > 0 && took <= LONGEST_MS ? took : undefined;
}

/** The message as it stands after `before`: a reply that does not know how long it took learns it. */
export function timed(message: Message, before: Message | undefined): Message {
  if (message.role !== 'assistant' || message.status !== 'done' || message.latencyMs !== undefined)
    return message;
  const latencyMs = latencyOf(before, message.at);
  return latencyMs === undefined ? message : { ...message, latencyMs };
}
