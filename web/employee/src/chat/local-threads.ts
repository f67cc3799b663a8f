// What this browser remembers of chats that run over POST /me/chat: the list of conversations and their newest messages,
// so that a reload loses nothing, not even half a reply. The server's history stays the record; signing out forgets this.
import { readStored, writeStored } from '@tidepool/shared/storage';
import { session } from '../api';
import { UNSURE, type Conversation, type Message } from './engine/types';

export const PREFIX = 'tidepool.chat.';
const MOST_MESSAGES = 120;
const MOST_CONVERSATIONS = 40;

export interface LocalThreads {
  conversations: () => Conversation[];
  messages: (key: string | null) => Message[] | null;
  keep: (key: string | null, messages: readonly Message[]) => void;
  /** What waits goes out by itself no more: it is left to the person. */
  release: () => void;
}

export function localThreads(account: string, instance: string): LocalThreads {
  const base = `${PREFIX}${account}.${instance}.`;
  const listKey = `${base}list`;
  const threadKey = (key: string | null) => `${base}thread.${key ?? 'main'}`;
  const waiting = waitingHere(`${base}waiting`);
  const conversations = () => (parse(readStored(listKey)) as Conversation[] | null) ?? [];
  return {
    conversations,
    messages(key) {
      const found = parse(readStored(threadKey(key))) as Message[] | null;
      return found === null ? null : settled(found, waiting.ids());
    },
    keep(key, messages) {
      const last = messages.at(-1);
      if (last === undefined || isSignedOut()) return;
      waiting.note(messages);
      writeStored(threadKey(key), JSON.stringify(messages.slice(-MOST_MESSAGES)));
      if (key === null) return;
      const title = titleOf(messages);
      const rest = conversations().filter((one) => one.key !== key);
      const list = [{ key, title, updatedAt: last.at }, ...rest].sort((a, b) => b.updatedAt - a.updatedAt);
      for (const gone of list.slice(MOST_CONVERSATIONS)) writeStored(threadKey(gone.key), null);
      writeStored(listKey, JSON.stringify(list.slice(0, MOST_CONVERSATIONS)));
    },
    release: waiting.clear,
  };
}

/** Leaves nothing of anybody's chats in this browser. */
export function forgetThreads() {
  waitingInTab.clear();
  for (const storage of [() => localStorage, () => sessionStorage])
    for (const key of storedKeys(storage)) if (key.startsWith(PREFIX)) writeStored(key, null, storage);
}

export function storedKeys(storage: () => Storage): string[] {
  try {
    return Object.keys(storage());
  } catch {
    return [];
  }
}

const tab = () => sessionStorage;
/** What waits in this tab, by the key it is stored under. While the page lives only it knows: a tab that is duplicated takes along all that is stored. */
const waitingInTab = new Map<string, Set<string>>();

window.addEventListener('pagehide', () => {
  for (const [key, ids] of waitingInTab)
    writeStored(key, ids.size === 0 ? null : JSON.stringify([...ids]), tab);
});
window.addEventListener('pageshow', ({ persisted }) => {
  // The page that came in its place may have sent it.
  if (persisted) takeOver();
});
takeOver();

/** What the page before this one left to this tab, for every instance. */
function takeOver() {
  waitingInTab.clear();
  for (const key of storedKeys(tab).filter((key) => key.startsWith(PREFIX))) {
    waitingInTab.set(key, new Set((parse(readStored(key, tab)) as string[] | null) ?? []));
    writeStored(key, null, tab);
  }
}

/** The prompts that wait in this tab: every tab reads the same threads, and each prompt is one tab's to send. */
export function waitingHere(key: string) {
  const ids = () => {
    const known = waitingInTab.get(key) ?? new Set<string>();
    waitingInTab.set(key, known);
    return known;
  };
  return {
    ids,
    note(messages: readonly Pick<Message, 'id' | 'status'>[]) {
      const known = ids();
      for (const { id, status } of messages)
        if (status === 'queued') known.add(id);
        else known.delete(id);
    },
    clear: () => ids().clear(),
  };
}

/** Here or in another tab: what ends because of that writes nothing of it down again. */
export function isSignedOut(): boolean {
  const { endReason } = session.state();
  return endReason === 'signed-out' || endReason === 'elsewhere';
}

export function titleOf(messages: readonly Pick<Message, 'role' | 'text'>[]): string {
  const first = messages.find((message) => message.role === 'user')?.text.trim() ?? '';
  const line = first.split('\n')[0] ?? '';
  return line.length > 60 ? `${Array.from(line).slice(0, 59).join('')}…` : line;
}

/**
 * A page that was closed in the middle left a reply half written, or a prompt that nobody answered. What waits in
 * another tab, or did in one that is gone, is sent by that one or by the person: twice sent is twice paid.
 */
function settled(messages: readonly Message[], waiting: ReadonlySet<string>): Message[] {
  const failure = { code: 'interrupted', msg: '' };
  return messages
    .filter((message, index) => !isBegun(message) || messages[index - 1]?.status !== 'sending')
    .map((message): Message => {
      if (isBegun(message)) return { ...message, status: 'broken', phase: undefined, failure };
      if (message.status === 'streaming') return { ...message, status: 'broken', phase: undefined };
      if (message.status === 'queued' && !waiting.has(message.id))
        return { ...message, status: 'failed', failure: UNSURE };
      return message.status === 'sending' ? { ...message, status: 'failed', failure } : message;
    });
}

/** A reply without a word: where its prompt had not arrived either, there was none. */
function isBegun({ role, status, text }: Message): boolean {
  return role === 'assistant' && (status === 'streaming' || status === 'broken') && text === '';
}

export function parse(text: string | null): unknown {
  if (text === null) return null;
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
