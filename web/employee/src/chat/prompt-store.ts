// The prompts that wait for the assistant, as this browser remembers them across a reload: their words only. Signing out
// forgets them with all else of the chats.
import { readStored, writeStored } from '@tidepool/shared/storage';
import type { Attachment, Message } from './engine/types';
import { isSignedOut, parse, PREFIX, storedKeys, waitingHere } from './local-threads';

interface KeptPrompt {
  message: Message;
  session: string;
  tried: boolean;
  /** Its conversation has still to be made. */
  unmade: boolean;
}

export interface PromptStore {
  read: () => (KeptPrompt & { files: readonly Attachment[]; foreign: boolean })[];
  /** Whether it still waits, here or in another tab. */
  has: (id: string) => boolean;
  keep: (prompt: KeptPrompt) => void;
  drop: (id: string) => void;
}

export const NO_STORE: PromptStore = { read: () => [], has: () => true, keep: () => null, drop: () => null };

export function promptStore(account: string, instance: string): PromptStore {
  const base = `${PREFIX}${account}.${instance}.prompt.`;
  const here = waitingHere(`${PREFIX}${account}.${instance}.prompts`);
  return {
    read() {
      const mine = here.ids();
      return storedKeys(() => localStorage)
        .filter((key) => key.startsWith(base))
        .map((key) => parse(readStored(key)) as KeptPrompt | null)
        .filter((kept) => kept !== null)
        .sort((a, b) => a.message.at - b.message.at)
        .map(({ message, tried, ...kept }) => ({
          ...kept,
          message: { ...message, status: 'queued' as const },
          files: [],
          // Another tab may be about to send it: the assistant takes it once, the platform would every time.
          tried: tried || !mine.has(message.id),
          foreign: !mine.has(message.id),
        }));
    },
    has: (id) => readStored(base + id) !== null,
    keep(prompt) {
      if (isSignedOut()) return;
      const { id } = prompt.message;
      here.note([{ id, status: 'queued' }]);
      writeStored(base + id, JSON.stringify(prompt));
    },
    drop(id) {
      here.note([{ id, status: 'sent' }]);
      writeStored(base + id, null);
    },
  };
}
