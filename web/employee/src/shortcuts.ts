// Keys that work on every page, and the one wish that only the chat can fulfil: a new chat.
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
