// Who waits for a long reply looks at something else: the tab's title says when it is there, and a notification where the
// browser has leave to show one. It is never asked for that.
import { useEffect, useRef } from 'react';
import { useText } from '../messages';
import type { Message } from './engine/types';

/** Who has left for less than this is on the way back. */
const LONG_MS = 8000;

export function useReplyNotice(messages: readonly Message[], name: string) {
  const { t } = useText();
  const written = useRef<string | null>(null);
  const last = messages.at(-1);
  const { id = '', at = 0, status } = last ?? {};
  useEffect(() => {
    if (status === 'streaming') written.current = id;
    else if (written.current === id) {
      written.current = null;
      const ended = status === 'done' || status === 'broken';
      if (ended && document.hidden && Date.now() - at >= LONG_MS)
        notify(t('chat.replyReady'), t('chat.replyReadyOf', { name }));
    }
  }, [id, at, status, name, t]);
}

function notify(title: string, text: string) {
  const before = document.title;
  const marked = `${title} · ${before}`;
  document.title = marked;
  let shown: Notification | null = null;
  const seen = () => {
    if (document.hidden) return;
    document.removeEventListener('visibilitychange', seen);
    if (document.title === marked) document.title = before;
    shown?.close();
  };
  document.addEventListener('visibilitychange', seen);
  if (typeof Notification === 'undefined' || Notification.permission !== 'granted') return;
  try {
    shown = new Notification(text, { tag: 'tidepool.reply' });
    shown.onclick = () => window.focus();
  } catch {
    // Phones show them by a service worker only.
    return;
  }
}
