// Why a difference waits for a person, in the reader's language. The server says it in an English sentence; one that this
// version does not know is shown as it is.
import type { Key } from '../messages';

const REASONS: ReadonlyMap<string, Key> = new Map([
  ['it takes a restart: it is brought with the next one, or by a person', 'ask.restart'],
  ['somebody changed its unit on the server: a person decides whether it is put back', 'ask.unit'],
  ['its configuration on the server cannot be read: a person must repair it', 'ask.unreadable'],
  ['it was written again and again, and did not stay', 'ask.undone'],
  ['it failed five times: it is tried again when something changes, or by a person', 'ask.failing'],
]);

export function askText(ask: string, t: (key: Key) => string): string {
  const key = REASONS.get(ask);
  return key === undefined ? ask : t(key);
}
