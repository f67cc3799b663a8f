// The thread: its newest part is drawn, earlier messages as the reader comes near them; it follows the newest word only while
// the reader is there.
import { Button } from '@tidepool/shared/ui/button';
import { ArrowDown } from 'lucide-react';
import { useCallback, useEffect, useLayoutEffect, useRef, useState, type ReactNode } from 'react';
import { useText } from '../../messages';
import type { Chat } from '../use-chat';
import { isRunning, type Message } from '../engine/types';
import { MessageView } from './message-view';

/** So many messages at first, … */
const FIRST = 40;
/** … so many more at each step back: few, so that scrolling never waits for them, … */
const STEP = 4;
/** … when the reader is so near to the first one drawn. */
const AHEAD = 1200;
/** Closer to the end than this counts as being there. */
const NEAR = 64;

interface ThreadViewProps {
  chat: Chat;
  onEdit: (message: Message) => void;
  empty: ReactNode;
}

export function ThreadView({ chat, onEdit, empty }: ThreadViewProps) {
  const { t } = useText();
  const { engine, state, unsaved, retrySave } = chat;
  const { messages } = state;
  const scroller = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const following = useRef(true);
  const fromEnd = useRef<number | null>(null);
  const [away, setAway] = useState(false);
  const [shown, setShown] = useState(FIRST);
  const running = isRunning(state);
  const visible = messages.slice(-shown);
  const hidden = messages.length - visible.length;

  const toEnd = useCallback(() => {
    const element = scroller.current;
    if (element === null) return;
    following.current = true;
    element.scrollTop = element.scrollHeight;
    setAway(false);
  }, []);

  // One's own prompt is what one looks for next.
  const lastPrompt = messages.findLast((message) => message.role === 'user')?.id;
  useLayoutEffect(() => toEnd(), [lastPrompt, state.conversation, state.loaded, toEnd]);

  useEffect(() => {
    const inner = content.current;
    if (inner === null) return;
    const observer = new ResizeObserver(() => {
      if (following.current) toEnd();
    });
    observer.observe(inner);
    return () => observer.disconnect();
  }, [toEnd]);

  useLayoutEffect(() => {
    const element = scroller.current;
    if (element === null || fromEnd.current === null) return;
    element.scrollTop = element.scrollHeight - fromEnd.current;
    fromEnd.current = null;
  }, [shown]);

  function scrolled() {
    const element = scroller.current;
    if (element === null) return;
    const near = element.scrollHeight - element.scrollTop - element.clientHeight < NEAR;
    following.current = near;
    setAway(!near);
    if (element.scrollTop < AHEAD && hidden > 0) earlier(STEP);
  }

  function earlier(more: number) {
    const element = scroller.current;
    if (element !== null) fromEnd.current = element.scrollHeight - element.scrollTop;
    setShown(shown + more);
  }

  const retry = useCallback((id: string) => engine.retry(id), [engine]);
  const regenerate = useCallback(() => engine.regenerate(), [engine]);
  const last = messages.at(-1);
  return (
    <div className="relative min-h-0 flex-1">
      <div
        ref={scroller}
        onScroll={scrolled}
        role="log"
        aria-live="off"
        aria-label={t('chat.thread')}
        // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- a region that scrolls has to be reachable
        tabIndex={0}
        className="size-full overflow-y-auto overscroll-contain -outline-offset-2"
      >
        <div ref={content} className="mx-auto w-full max-w-3xl px-4 pt-4 pb-6 sm:px-6">
          {hidden > 0 && (
            <div className="flex justify-center pb-3">
              <Button size="small" onClick={() => earlier(FIRST)}>
                {t('chat.earlier', { count: hidden })}
              </Button>
            </div>
          )}
          {messages.length === 0 && empty}
          {visible.map((message) => (
            <MessageView
              key={message.id}
              message={message}
              unsaved={unsaved.get(message.id)}
              newest={message.id === last?.id}
              busy={running}
              onRetry={retry}
              onRetrySave={retrySave}
              onEdit={onEdit}
              onRegenerate={regenerate}
            />
          ))}
        </div>
      </div>
      <p role="status" className="sr-only">
        {running
          ? t('chat.replying')
          : last?.role === 'assistant' && last.status === 'done'
            ? t('chat.replied')
            : ''}
      </p>
      {away && (
        <button
          type="button"
          onClick={toEnd}
          className="absolute bottom-3 left-1/2 flex min-h-9 -translate-x-1/2 items-center gap-1.5 rounded-full border border-line bg-surface px-3.5 text-sm font-medium shadow-high hover:bg-sunken"
        >
          <ArrowDown className="size-4" aria-hidden="true" />
          {t('chat.newest')}
        </button>
      )}
    </div>
  );
}
