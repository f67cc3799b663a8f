// Code in colours, when there is time for it: blocks wait for an idle moment one by one, and what was coloured once is kept,
// so that a message that comes back into view has its colours at once.
import { useEffect, useState, type ReactNode } from 'react';

/** Longer code stays plain: to colour it would stop the page. */
const MOST_CHARACTERS = 30_000;
const MOST_KEPT = 200;
/** A page that is never idle has its colours after this time all the same. */
const PATIENCE_MS = 2000;

const kept = new Map<string, ReactNode>();
let highlighter: Promise<typeof import('./highlight')> | null = null;

/** The coloured text; null until there is one. Nothing is done for a text that still grows. */
export function usePainted(text: string, language: string, growing: boolean): ReactNode | null {
  const key = `${language}\n${text}`;
  const [painted, setPainted] = useState<{ key: string; node: ReactNode } | null>(null);
  const known = painted?.key === key ? painted.node : (kept.get(key) ?? null);
  const waits = known === null && !growing && language !== '' && text.length <= MOST_CHARACTERS;
  useEffect(() => {
    if (!waits) return;
    const wait = new AbortController();
    void paint(text, language, wait.signal).then((node) => {
      if (node === null || wait.signal.aborted) return;
      keep(key, node);
      setPainted({ key, node });
    });
    return () => wait.abort();
  }, [waits, key, text, language]);
  return known;
}

async function paint(text: string, language: string, signal: AbortSignal): Promise<ReactNode | null> {
  highlighter ??= import('./highlight');
  const colours = await highlighter.catch(() => null);
  if (colours === null) {
    // Code is readable without colours; the next block tries to fetch them again.
    highlighter = null;
    return null;
  }
  await idle();
  return signal.aborted ? null : colours.paint(text, language);
}

/** Safari has no idle callbacks. */
const idle = () =>
  new Promise<void>((resolve) => {
    if ('requestIdleCallback' in window) requestIdleCallback(() => resolve(), { timeout: PATIENCE_MS });
    else setTimeout(resolve, 30);
  });

function keep(key: string, node: ReactNode) {
  kept.delete(key);
  kept.set(key, node);
  for (const oldest of kept.keys()) {
    if (kept.size <= MOST_KEPT) break;
    kept.delete(oldest);
  }
}
