// Light, dark or the system's choice. boot.js applies it before the first paint; here it changes while the page is open.
import { useSyncExternalStore } from 'react';
import { readStored, writeStored } from './storage';

export const THEMES = ['system', 'light', 'dark'] as const;
export type Theme = (typeof THEMES)[number];

const KEY = 'tidepool.theme';
const listeners = new Set<() => void>();
const dark = window.matchMedia('(prefers-color-scheme: dark)');
let chosen: Theme = stored();

function stored(): Theme {
  const value = readStored(KEY);
  return value === 'light' || value === 'dark' ? value : 'system';
}

function apply() {
  const resolved = chosen === 'system' ? (dark.matches ? 'dark' : 'light') : chosen;
  document.documentElement.dataset.theme = resolved;
  for (const listener of listeners) listener();
}

export function setTheme(theme: Theme) {
  chosen = theme;
  writeStored(KEY, theme);
  apply();
}

dark.addEventListener('change', apply);
// The system may have changed its mind since boot.js ran.
apply();
window.addEventListener('storage', (event) => {
  if (event.key !== KEY && event.key !== null) return;
  chosen = stored();
  apply();
});

export function useTheme(): Theme {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => chosen,
  );
}
