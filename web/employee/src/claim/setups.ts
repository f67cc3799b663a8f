// Instances that are being set up after a claim, with the task to watch; kept for this tab, so that a reload goes on watching.
import { readStored, writeStored } from '@tidepool/shared/storage';
import { useSyncExternalStore } from 'react';

const KEY = 'tidepool.setups';
const listeners = new Set<() => void>();
let current: Readonly<Record<string, string>> = stored();

function stored(): Record<string, string> {
  try {
    const found: unknown = JSON.parse(readStored(KEY, () => sessionStorage) ?? '{}');
    return typeof found === 'object' && found !== null ? (found as Record<string, string>) : {};
  } catch {
    return {};
  }
}

/** `task` null ends the watch. */
export function setSetup(instance: string, task: string | null) {
  const rest = Object.entries(current).filter(([id]) => id !== instance);
  current = Object.fromEntries(task === null ? rest : [...rest, [instance, task]]);
  writeStored(KEY, JSON.stringify(current), () => sessionStorage);
  for (const listener of listeners) listener();
}

/** The task that sets up an instance, null when none is watched. */
export function useSetup(instance: string): string | null {
  const setups = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => current,
  );
  return setups[instance] ?? null;
}
