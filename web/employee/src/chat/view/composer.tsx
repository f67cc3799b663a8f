// Where one writes: Enter sends, Shift+Enter breaks the line, an input method's Enter stays its own, ↑ brings back the
// last prompt, Esc ends an edit or the running reply.
import { ArrowUp, Square, X } from 'lucide-react';
import { useEffect, useImperativeHandle, useLayoutEffect, useRef, type KeyboardEvent, type Ref } from 'react';
import { useText } from '../../messages';

export interface ComposerHandle {
  focus: () => void;
}

interface ComposerProps {
  ref?: Ref<ComposerHandle>;
  text: string;
  onText: (text: string) => void;
  onSend: (text: string) => void;
  onStop: () => void;
  running: boolean;
  /** Null when writing is possible; otherwise why not. */
  closed: string | null;
  /** The last prompt, for ↑. */
  last: string | undefined;
  /** Set while an earlier prompt is being changed. */
  onCancelEdit: (() => void) | null;
  instanceName: string;
}

export function Composer(props: ComposerProps) {
  const { ref, text, onText, onSend, onStop, running, closed, last, onCancelEdit, instanceName } = props;
  const { t } = useText();
  const area = useRef<HTMLTextAreaElement>(null);
  useImperativeHandle(ref, () => ({ focus: () => area.current?.focus() }), []);

  useLayoutEffect(() => {
    const element = area.current;
    if (element === null) return;
    element.style.height = 'auto';
    element.style.height = `${Math.min(element.scrollHeight, 260)}px`;
  }, [text]);

  useEffect(() => {
    if (!running) return;
    const stop = (event: globalThis.KeyboardEvent) => {
      if (event.key !== 'Escape' || event.defaultPrevented || event.isComposing) return;
      if (document.querySelector('[role=dialog], [role=menu]') === null) onStop();
    };
    window.addEventListener('keydown', stop);
    return () => window.removeEventListener('keydown', stop);
  }, [running, onStop]);

  const ready = text.trim() !== '' && closed === null;

  function send() {
    if (!ready) return;
    onSend(text.trim());
  }

  function keys(event: KeyboardEvent<HTMLTextAreaElement>) {
    // Safari ends the composition before the key; the key code tells even there.
    // eslint-disable-next-line @typescript-eslint/no-deprecated
    if (event.nativeEvent.isComposing || event.keyCode === 229) return;
    if (event.key === 'Enter' && !event.shiftKey) {
      event.preventDefault();
      send();
    } else if (event.key === 'ArrowUp' && text === '' && last !== undefined) {
      event.preventDefault();
      onText(last);
    } else if (event.key === 'Escape' && onCancelEdit !== null) {
      event.preventDefault();
      onCancelEdit();
    }
  }

  return (
    <div className="mx-auto w-full max-w-3xl px-3 pb-2 sm:px-6">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          send();
        }}
        className="rounded-2xl border border-control bg-surface shadow-card has-[textarea:focus-visible]:border-accent has-[textarea:focus-visible]:outline-2 has-[textarea:focus-visible]:-outline-offset-1 has-[textarea:focus-visible]:outline-accent"
      >
        {onCancelEdit !== null && (
          <div className="flex items-center justify-between border-b border-line ps-4 pe-1 text-xs text-muted">
            {t('chat.editing')}
            <button
              type="button"
              className="flex size-8 items-center justify-center rounded-md hover:text-ink"
              aria-label={t('chat.cancelEdit')}
              onClick={onCancelEdit}
            >
              <X className="size-4" aria-hidden="true" />
            </button>
          </div>
        )}
        <div className="flex items-end gap-2 p-2">
          <textarea
            ref={area}
            rows={1}
            value={text}
            onChange={(event) => onText(event.target.value)}
            onKeyDown={keys}
            aria-label={t('chat.message', { name: instanceName })}
            aria-describedby="composer-hint"
            placeholder={closed ?? t('chat.placeholder', { name: instanceName })}
            className="max-h-65 min-h-9 flex-1 resize-none bg-transparent px-2 py-1.5 text-base leading-6 outline-none placeholder:text-muted focus-visible:shadow-none focus-visible:outline-none sm:text-[0.9375rem]"
          />
          {running && (
            <button
              type="button"
              onClick={onStop}
              aria-label={t('chat.stop')}
              title={t('chat.stopHint')}
              className="flex size-9 shrink-0 items-center justify-center rounded-xl bg-ink text-surface hover:opacity-85"
            >
              <Square className="size-3.5 fill-current" aria-hidden="true" />
            </button>
          )}
          {(!running || ready) && (
            <button
              type="submit"
              aria-disabled={!ready}
              aria-label={t('chat.send')}
              title={t('chat.send')}
              className="flex size-9 shrink-0 items-center justify-center rounded-xl bg-accent text-on-accent hover:bg-accent-strong aria-disabled:bg-sunken aria-disabled:text-muted"
            >
              <ArrowUp className="size-5" aria-hidden="true" />
            </button>
          )}
        </div>
      </form>
      <p id="composer-hint" className="mt-1 hidden text-center text-xs text-muted sm:block">
        {t('chat.hint')}
      </p>
    </div>
  );
}
