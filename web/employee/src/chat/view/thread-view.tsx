// The thread: only the messages near the reader are in the page; it follows the newest word only while the reader is there.
import { lazyPart } from '@tidepool/shared/lazy-part';
import { CloseAway } from '@tidepool/shared/shell/close-away';
import { ArrowDown } from 'lucide-react';
import {
  Fragment,
  Suspense,
  useCallback,
  useEffect,
  useLayoutEffect,
  useRef,
  useState,
  type ReactNode,
} from 'react';
import { useText } from '../../messages';
import { isShortcut } from '../../shortcuts';
import type { Chat } from '../use-chat';
import { isRunning, type Message } from '../engine/types';
import { OpenFolds } from './folds';
import { MessageView } from './message-view';
import { OlderRow } from './older-row';
import { useWindow } from './use-window';

const FindBar = lazyPart(() => import('../find/find-bar'), CloseAway);

interface ThreadViewProps {
  chat: Chat;
  /** Its id, for the way to its history. */
  instance: string;
  finding: boolean;
  onFind: (finding: boolean) => void;
  onEdit: (message: Message) => void;
  /** A prompt cannot be asked again as it was: its files are not here any more. */
  onFilesGone: (prompt: Message) => void;
  empty: ReactNode;
}

export function ThreadView({ chat, instance, finding, onFind, onEdit, onFilesGone, empty }: ThreadViewProps) {
  const { t } = useText();
  const { engine, state, unsaved, retrySave } = chat;
  const { messages, older } = state;
  const scroller = useRef<HTMLDivElement>(null);
  const loadOlder = useCallback(() => engine.loadOlder(), [engine]);
  const { items, height, measure, following, toEnd, toMessage, onScroll } = useWindow(
    messages,
    older,
    scroller,
    loadOlder,
  );
  // What was unfolded stays so when it comes back into view.
  const [openFolds] = useState(() => new Set<string>());
  const running = isRunning(state);

  // One's own prompt is what one looks for next.
  const lastPrompt = messages.findLast((message) => message.role === 'user');
  const asking = lastPrompt?.status === 'sent' ? undefined : lastPrompt?.id;
  useLayoutEffect(() => {
    if (asking !== undefined) toEnd();
  }, [asking, toEnd]);
  useLayoutEffect(() => toEnd(), [state.conversation, state.loaded, toEnd]);

  // Where all of the thread is in the page the browser's own search finds it.
  const partly = items.length < messages.length;
  useEffect(() => {
    if (!partly || finding) return;
    const press = (event: KeyboardEvent) => {
      if (!isShortcut(event, 'f')) return;
      event.preventDefault();
      onFind(true);
    };
    window.addEventListener('keydown', press);
    return () => window.removeEventListener('keydown', press);
  }, [partly, finding, onFind]);

  const retry = useCallback((id: string) => engine.retry(id), [engine]);
  const regenerate = useCallback(() => {
    if (engine.regenerate()) return;
    const prompt = engine.state().messages.findLast((message) => message.role === 'user');
    if (prompt !== undefined) onFilesGone(prompt);
  }, [engine, onFilesGone]);
  const last = messages.at(-1);
  return (
    <div className="relative min-h-0 flex-1">
      <div
        ref={scroller}
        onScroll={onScroll}
        role="log"
        aria-live="off"
        aria-label={t('chat.thread')}
        // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- a region that scrolls has to be reachable
        tabIndex={0}
        className="size-full overflow-y-auto overscroll-contain -outline-offset-2"
      >
        {messages.length === 0 ? (
          <div className="mx-auto w-full max-w-3xl px-4 pt-4 pb-6 sm:px-6">{empty}</div>
        ) : (
          <OpenFolds value={openFolds}>
            <div className="relative mx-auto w-full max-w-3xl">
              {older !== 'nothing' && <OlderRow older={older} instance={instance} onLoad={loadOlder} />}
              {items.map(({ key, index, start }, at) => {
                const message = messages[index];
                return message === undefined ? null : (
                  <Fragment key={key}>
                    <Space height={start - (items[at - 1]?.end ?? 0)} />
                    <div
                      ref={measure}
                      data-index={index}
                      data-message={message.id}
                      className="px-4 contain-content sm:px-6"
                    >
                      <MessageView
                        message={message}
                        place={index + 1}
                        of={messages.length}
                        unsaved={unsaved.get(message.id)}
                        newest={message.id === last?.id}
                        busy={running}
                        onRetry={retry}
                        onRetrySave={retrySave}
                        onEdit={onEdit}
                        onRegenerate={regenerate}
                      />
                    </div>
                  </Fragment>
                );
              })}
              <Space height={height - (items.at(-1)?.end ?? 0)} />
            </div>
          </OpenFolds>
        )}
      </div>
      <p role="status" className="sr-only">
        {running
          ? t('chat.replying')
          : last?.role === 'assistant' && last.status === 'done'
            ? t('chat.replied')
            : ''}
      </p>
      {finding && (
        <Suspense fallback={null}>
          <FindBar
            messages={messages}
            scroller={scroller}
            drawn={items}
            onGo={toMessage}
            onClose={() => {
              onFind(false);
              scroller.current?.focus({ preventScroll: true });
            }}
          />
        </Suspense>
      )}
      {!following && messages.length > 0 && (
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

/** In the place of messages that are not in the page; never what the browser keeps in its place. */
function Space({ height }: { height: number }) {
  return height > 0 && <div style={{ height }} className="[overflow-anchor:none]" />;
}
