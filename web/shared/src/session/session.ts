// The signed-in state of one app: a token in localStorage under the app's own key, followed across tabs.
// Everything that must react to signing in or out subscribes here.
import { readStored, writeStored } from '../storage';

/** Why there is no token: the person signed out here, in another tab, or the server no longer takes the token. */
export type EndReason = 'signed-out' | 'elsewhere' | 'ended';

export interface SessionState {
  readonly token: string | null;
  /** Set only after a session that this tab has seen ended; that the server ended it is told after a reload, too. */
  readonly endReason: EndReason | null;
  /** Grows when the signed-in account may have changed, not when a token is merely renewed. */
  readonly epoch: number;
}

export interface Session {
  state: () => SessionState;
  subscribe: (listener: () => void) => () => void;
  /** A new sign-in. */
  start: (token: string) => void;
  /** A fresh token of the same account, as after a password change. */
  renew: (token: string) => void;
  end: (reason: EndReason) => void;
}

export function createSession(storageKey: string): Session {
  const listeners = new Set<() => void>();
  const endedKey = `${storageKey}.ended`;
  const token = readStored(storageKey);
  const ended = token === null && readStored(endedKey, () => sessionStorage) !== null;
  let current: SessionState = { token, endReason: ended ? 'ended' : null, epoch: 0 };

  function change(next: SessionState) {
    current = next;
    writeStored(endedKey, next.endReason === 'ended' ? 'yes' : null, () => sessionStorage);
    for (const listener of listeners) listener();
  }

  window.addEventListener('storage', (event) => {
    // A null key means that the whole storage was cleared.
    if (event.key !== storageKey && event.key !== null) return;
    const token = readStored(storageKey);
    if (token === current.token) return;
    change({ token, endReason: token === null ? 'elsewhere' : null, epoch: current.epoch + 1 });
  });

  return {
    state: () => current,
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    start(token) {
      writeStored(storageKey, token);
      change({ token, endReason: null, epoch: current.epoch + 1 });
    },
    renew(token) {
      writeStored(storageKey, token);
      change({ ...current, token });
    },
    end(reason) {
      writeStored(storageKey, null);
      change({ token: null, endReason: reason, epoch: current.epoch + 1 });
    },
  };
}
