// Before the first word: what the assistant is doing and for how long already, so that a slow start is not a silent one.
import { useEffect, useState } from 'react';
import { useText, type Key } from '../../messages';

const PHASES: Readonly<Record<string, Key>> = {
  preparing_workspace: 'chat.phaseWorkspace',
  preparing_context: 'chat.phaseContext',
  starting_model: 'chat.phaseModel',
  retrying: 'chat.phaseRetry',
};

/** Shown from then on: nobody counts the first seconds. */
const COUNTED_FROM = 4;

export function Waiting({ since, phase }: { since: number; phase?: string }) {
  const { t } = useText();
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  const waited = Math.max(0, Math.round((now - since) / 1000));
  return (
    <p className="chat-caret text-muted">
      {t(PHASES[phase ?? ''] ?? 'chat.thinking')}
      {waited >= COUNTED_FROM && (
        <span className="ms-1.5 text-xs tabular-nums">{t('chat.waited', { seconds: waited })}</span>
      )}
    </p>
  );
}
