// What the platform stored of a conversation, as messages, and which of it stands before those shown.
import { HISTORY_SIZE, type GatewayApi, type HistoryMessage } from './gateway-api';
import { timed } from './latency';
import type { Message } from './types';

export function storedMessages(list: readonly HistoryMessage[]): Message[] {
  const messages = list.map(storedMessage);
  return messages.map((message, index) => timed(message, messages[index - 1]));
}

function storedMessage({ id, role, content, created_at }: HistoryMessage): Message {
  return {
    id,
    role,
    text: content,
    at: new Date(created_at).getTime(),
    status: role === 'user' ? 'sent' : 'done',
  };
}

interface OlderPage {
  messages: Message[];
  /** The server's id of the first of them. */
  oldest: string | undefined;
  more: boolean;
}

/** The page before `oldest`. What a browser kept has ids of its own: then it is looked for where `shown` begins. */
export async function olderPage(
  api: Pick<GatewayApi, 'history'>,
  conversation: string | null,
  shown: readonly Message[],
  oldest: string | undefined,
): Promise<OlderPage> {
  let before = oldest;
  let met = oldest !== undefined;
  // What may still be met; where a page begins with one of them, those before it may stand on the page before.
  let sought = met ? [] : shown;
  for (;;) {
    const page = await api.history(conversation, before);
    const more = page.length === HISTORY_SIZE;
    before = page[0]?.id ?? before;
    const match = firstIn(page, sought);
    const place = match?.place ?? (met ? page.length : 0);
    if (match !== null) {
      met = true;
      sought = sought.slice(0, match.index);
    }
    if (!more || place > 0) return { messages: storedMessages(page.slice(0, place)), oldest: before, more };
  }
}

/** The first message that the page has as well, and its place there. */
function firstIn(
  page: readonly HistoryMessage[],
  shown: readonly Message[],
): { index: number; place: number } | null {
  for (const [index, { role, text, at }] of shown.entries()) {
    const same = page
      .map((one, place) => ({ ...one, place, away: Math.abs(new Date(one.created_at).getTime() - at) }))
      .filter((one) => one.role === role && one.content === text);
    if (same.length > 0) return { index, place: same.reduce((a, b) => (b.away < a.away ? b : a)).place };
  }
  return null;
}
