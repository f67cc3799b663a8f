// The gateway's shapes, as far as a chat needs them, and how they become messages.
import { mediaTypeOf } from '../media-type';
import { latencyOf } from './latency';
import type { Attachment, Conversation, FileFacts, Message, ToolCall, Usage } from './types';

/** As many messages as a gateway answers at most. */
export const MOST_HISTORY = 1000;
export const MAIN_SESSION = 'agent:main:main';
/** As the gateway begins the keys of those that it makes itself. */
export const NEW_SESSION = 'agent:main:dashboard:';

interface Part {
  type?: string;
  text?: string;
  thinking?: string;
  id?: string;
  name?: string;
  arguments?: unknown;
}

export interface WireMessage {
  role?: string;
  content?: string | Part[];
  timestamp?: number;
  model?: string;
  usage?: { input?: number; output?: number; totalTokens?: number };
  toolCallId?: string;
  isError?: boolean;
  idempotencyKey?: string;
  __openclaw?: {
    id?: string;
    runId?: string;
    media?: { fileName?: string; contentType?: string; sizeBytes?: number }[];
  };
}

export interface WireHistory {
  messages?: WireMessage[];
  /** The newest of those that run; older releases name none. */
  inFlightRun?: { runId: string; text?: string; startedAt?: number } | null;
  sessionInfo?: { hasActiveRun?: boolean };
}

export interface WireChat {
  runId?: string;
  sessionKey?: string;
  state?: 'status' | 'delta' | 'final' | 'error' | 'aborted';
  phase?: string;
  retry?: { attempt: number };
  message?: WireMessage;
  errorMessage?: string;
}

export interface WireAgent {
  runId?: string;
  sessionKey?: string;
  stream?: string;
  data?: {
    phase?: string;
    name?: string;
    toolCallId?: string;
    args?: unknown;
    result?: unknown;
    isError?: boolean;
    text?: string;
  };
}

export interface WireSessions {
  sessions?: {
    key: string;
    label?: string;
    displayName?: string;
    derivedTitle?: string;
    updatedAt?: number;
    isBackground?: boolean;
    archived?: boolean;
  }[];
}

/** A run has its prompt's id; its reply needs one of its own. */
export function replyId(runId: string): string {
  return `${runId}:reply`;
}

export function textOf(content: WireMessage['content']): string {
  if (typeof content === 'string') return content;
  return (content ?? []).map((part) => (part.type === 'text' ? (part.text ?? '') : '')).join('');
}

/** The messages of a history, with each tool's result beside its call. */
export function messagesOf(history: WireHistory): Message[] {
  const messages: Message[] = [];
  const moments = new Map<number, number>();
  for (const wire of history.messages ?? []) {
    const at = wire.timestamp ?? 0;
    // Where the gateway names none: the same in a longer reading of the same conversation.
    const nth = moments.get(at) ?? 0;
    moments.set(at, nth + 1);
    const id = wire.idempotencyKey?.replace(/:user$/, '') ?? wire.__openclaw?.id ?? `h${at}-${nth}`;
    if (wire.role === 'user')
      messages.push({
        id,
        role: 'user',
        text: textOf(wire.content),
        at,
        status: 'sent',
        ...(wire.__openclaw?.media?.length && { files: filesOf(wire.__openclaw.media) }),
      });
    else if (wire.role === 'assistant') takeReply(messages, wire, id, at);
    else if (wire.role === 'toolResult') takeResult(messages, wire);
  }
  const { inFlightRun: run } = history;
  if (run)
    messages.push({
      id: replyId(run.runId),
      role: 'assistant',
      text: run.text ?? '',
      at: run.startedAt ?? Date.now(),
      status: 'streaming',
      run: run.runId,
    });
  return messages;
}

/** Nothing is written in the conversation any more. Only what says so itself does: a run that is not named may go on. */
export function isIdle({ inFlightRun, sessionInfo }: WireHistory): boolean {
  return !inFlightRun && sessionInfo?.hasActiveRun === false;
}

/** The reply of a run that is over; undefined while the history says nothing of it, null where it left none. */
export function replyOf(
  known: readonly Message[],
  { id, asked }: { id: string; asked: boolean },
): Message | null | undefined {
  const own = known.findLast((message) => message.run === id && message.status === 'done');
  if (own !== undefined) return own;
  const prompt = known.findIndex((message) => message.role === 'user' && message.id === id);
  // A reading without any prompt begins in the middle of a long reply.
  if (prompt === -1 && asked && (known.length === 0 || known.some(({ role }) => role === 'user')))
    return undefined;
  const reply = prompt === -1 ? known.at(-1) : known[prompt + 1];
  // Where a history does not say which run wrote a reply, its place does.
  return reply?.role === 'assistant' && reply.status === 'done' && reply.run === undefined ? reply : null;
}

/** Of a longer reading of a conversation, what comes before the messages shown; `instead` of so many of those. */
export function olderOf(
  known: readonly Message[],
  shown: readonly Message[],
): { older: Message[]; instead: number } {
  // A prompt is the same in both. A reply need not be: the shorter reading may have begun in the middle of it.
  for (const [instead, prompt] of shown.entries()) {
    if (prompt.role !== 'user') continue;
    const place = known.findLastIndex(
      ({ id, role, text, at }) =>
        role === 'user' && (id === prompt.id || (at === prompt.at && text === prompt.text)),
    );
    if (place !== -1) return { older: known.slice(0, place), instead };
  }
  const open = shown.findIndex(({ status }) => status !== 'done' && status !== 'stopped');
  return { older: [...known], instead: open === -1 ? shown.length : open };
}

function filesOf(media: NonNullable<NonNullable<WireMessage['__openclaw']>['media']>): FileFacts[] {
  return media.map(({ fileName = '', contentType = '', sizeBytes = 0 }) => ({
    name: fileName,
    type: contentType || mediaTypeOf(fileName),
    size: sizeBytes,
  }));
}

/** A turn with tools is stored in several pieces; to a reader it is one reply. */
function takeReply(messages: Message[], wire: WireMessage, id: string, at: number) {
  const parts = typeof wire.content === 'string' ? [] : (wire.content ?? []);
  const text = textOf(wire.content);
  const reasoning = parts.map((part) => part.thinking ?? '').join('');
  const tools = parts
    .filter((part) => part.type === 'toolCall')
    .map((part): ToolCall => ({
      id: part.id ?? '',
      name: part.name ?? '',
      input: shown(part.arguments),
      output: '',
      state: 'done',
    }));
  const run = wire.__openclaw?.runId;
  const before = messages.at(-1);
  if (before?.role === 'assistant' && (before.tools?.length ?? 0) > 0 && before.run === run) {
    messages[messages.length - 1] = {
      ...before,
      text: [before.text, text].filter(Boolean).join('\n\n'),
      tools: [...(before.tools ?? []), ...tools],
      usage: together(before.usage, usageOf(wire)),
      latencyMs: latencyOf(messages.at(-2), at),
      calling: tools.length > 0,
    };
    return;
  }
  messages.push({
    id,
    role: 'assistant',
    text,
    at,
    status: 'done',
    ...(reasoning && { reasoning }),
    ...(tools.length > 0 && { tools, calling: true }),
    ...(run !== undefined && { run }),
    usage: usageOf(wire),
    latencyMs: latencyOf(before, at),
    model: wire.model,
  });
}

function takeResult(messages: Message[], wire: WireMessage) {
  const reply = messages.at(-1);
  if (reply?.role !== 'assistant') return;
  messages[messages.length - 1] = {
    ...reply,
    tools: reply.tools?.map((tool) =>
      tool.id === wire.toolCallId
        ? { ...tool, output: textOf(wire.content), state: wire.isError ? 'failed' : 'done' }
        : tool,
    ),
  };
}

/** Without its cost: the assistant knows none of our prices. */
export function usageOf(wire: WireMessage): Usage | undefined {
  if (wire.usage === undefined) return undefined;
  const { input = 0, output = 0, totalTokens = input + output } = wire.usage;
  return { prompt: totalTokens - output, completion: output, total: totalTokens, cost: null };
}

function together(before: Usage | undefined, more: Usage | undefined): Usage | undefined {
  if (before === undefined || more === undefined) return more ?? before;
  return {
    prompt: before.prompt + more.prompt,
    completion: before.completion + more.completion,
    total: before.total + more.total,
    cost: null,
    calls: [...(before.calls ?? [before]), more],
  };
}

/** One more piece of news about a tool, in the list of those the reply has used. */
export function withTool(tools: readonly ToolCall[], data: NonNullable<WireAgent['data']>): ToolCall[] {
  const id = data.toolCallId ?? data.name ?? '';
  const known = tools.find((tool) => tool.id === id);
  const ended = data.phase === 'result' || data.phase === 'end';
  const next: ToolCall = {
    id,
    name: data.name ?? known?.name ?? '',
    input: data.args === undefined ? (known?.input ?? '') : shown(data.args),
    output: data.result === undefined ? (known?.output ?? '') : shown(data.result),
    state: data.isError ? 'failed' : ended ? 'done' : 'running',
  };
  return known ? tools.map((tool) => (tool.id === id ? next : tool)) : [...tools, next];
}

export function conversationsOf(list: WireSessions): Conversation[] {
  return (list.sessions ?? [])
    .filter((session) => !session.isBackground && !session.archived)
    .map((session): Conversation => {
      const title = session.label ?? session.derivedTitle ?? session.displayName ?? nameOf(session.key);
      const updatedAt = session.updatedAt ?? 0;
      const unnamed = session.key === MAIN_SESSION && title === nameOf(MAIN_SESSION);
      return { key: session.key, title, updatedAt, ...(unnamed && { main: true }) };
    })
    .sort((a, b) => b.updatedAt - a.updatedAt);
}

/** `agent:main:dashboard:9f…` has no name of its own. */
function nameOf(key: string): string {
  const name = key.split(':').slice(2).join(' ');
  return /[0-9a-f]{8}-/.test(name) ? '' : name;
}

/** A file in the form of `chat.send`. */
export function wireFile({ name, type, content }: Attachment): object {
  const kind = type.startsWith('image/') ? 'image' : 'file';
  return { type: kind, mimeType: type || 'application/octet-stream', fileName: name, content };
}

function shown(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value, null, 2);
}
