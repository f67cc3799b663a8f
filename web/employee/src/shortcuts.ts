// Keys that work on every page, and the one wish that only the chat can fulfil: a new chat.
import { readStored, writeStored } from '@tidepool/shared/storage';
import { useSyncExternalStore } from 'react';

const wishes = new Set<() => void>();

/** The chat page listens while it is open. */
export function onNewChat(listener: () => void): () => void {
  wishes.add(listener);
  return () => wishes.delete(listener);
}

/** False when nobody is there to fulfil it. */
export function wishNewChat(): boolean {
  for (const wish of wishes) wish();
  return wishes.size > 0;
}

/** Whether a key event is this shortcut, with Ctrl or ⌘. */
export function isShortcut(event: KeyboardEvent, key: string, shift = false): boolean {
  return (
    (event.ctrlKey || event.metaKey) &&
    !event.altKey &&
    event.shiftKey === shift &&
    event.key.toLowerCase() === key
  );
}

const PLAIN_OFF = 'tidepool.keys.plain.off';
const listeners = new Set<() => void>();
const arePlainKeysOn = () => readStored(PLAIN_OFF) === null;

/** Whether keys without Ctrl or ⌘ do something. Who speaks to their computer, or has a tremor, can switch them off. */
export function usePlainKeys(): [boolean, (on: boolean) => void] {
  const on = useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, arePlainKeysOn);
  return [
    on,
    (next) => {
      writeStored(PLAIN_OFF, next ? null : '1');
      for (const listener of listeners) listener();
    },
  ];
}

/** Where a letter is typed, or chooses something. */
const TYPED_INTO =
  'input, textarea, select, [contenteditable], [role=dialog], [role=menu], [role=listbox], [role=combobox]';

/** Whether a key event is this key alone, and meant for no field. */
export function isPlainKey(event: KeyboardEvent, key: string): boolean {
  if (event.key !== key || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented)
    return false;
  const typed = event.target instanceof Element && event.target.closest(TYPED_INTO) !== null;
  return !typed && arePlainKeysOn();
}
