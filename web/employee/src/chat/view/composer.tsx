// Where one writes: Enter sends, Shift+Enter breaks the line, an input method's Enter stays its own, ↑ brings back the
// last prompt, Esc ends an edit or the running reply. Files are chosen, pasted or dropped.
import { IconButton } from '@tidepool/shared/ui/icon-button';
import { ArrowUp, Paperclip, Square, X } from 'lucide-react';
import {
  useEffect,
  useImperativeHandle,
  useLayoutEffect,
  useRef,
  type ClipboardEvent,
  type DragEvent,
  type KeyboardEvent,
  type Ref,
} from 'react';
import { useText } from '../../messages';
import type { ChosenFiles } from '../use-files';
import { Files } from './files';

export interface ComposerHandle {
  focus: () => void;
}

interface ComposerProps {
  ref?: Ref<ComposerHandle>;
  text: string;
  onText: (text: string) => void;
  onSend: (text: string) => void;
  onStop: () => void;
  files: ChosenFiles;
  /** Whether the connection takes files at all. */
  attachable: boolean;
  running: boolean;
  /** Null when writing is possible; otherwise why not. */
  closed: string | null;
  /** The last prompt, for ↑. */
  last: string | undefined;
  /** Set while an earlier prompt is being changed. */
  onCancelEdit: (() => void) | null;
  /** Whether a changed prompt takes the place of the earlier one, or is said anew. */
  editReplaces: boolean;
  instanceName: string;
}

export function Composer(props: ComposerProps) {
  const { ref, text, onText, onSend, onStop, running, closed, last, onCancelEdit, instanceName } = props;
  const { files, attachable } = props;
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

  const attached = files.files.length > 0;
  const ready = text.trim() !== '' && closed === null && (attachable || !attached);
  const problem =
    files.problem ??
    (attached && !attachable
      ? t('files.notHere')
      : attached && text.trim() === ''
        ? t('files.needText')
        : null);

  function paste(event: ClipboardEvent) {
    const pasted = [...event.clipboardData.files];
    // Office programs add a picture of the text that they copy: then the text is meant.
    if (!attachable || pasted.length === 0 || event.clipboardData.types.includes('text/plain')) return;
    event.preventDefault();
    files.add(pasted);
  }

  function drop(event: DragEvent) {
    if (!attachable || !event.dataTransfer.types.includes('Files')) return;
    event.preventDefault();
    files.add([...event.dataTransfer.files]);
  }

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
      {/* eslint-disable-next-line jsx-a11y/no-noninteractive-element-interactions -- who cannot drop files has the button for them */}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          send();
        }}
        onDragOver={(event) => {
          if (attachable && event.dataTransfer.types.includes('Files')) event.preventDefault();
        }}
        onDrop={drop}
        className="rounded-2xl border border-control bg-surface shadow-card has-[textarea:focus-visible]:border-accent has-[textarea:focus-visible]:outline-2 has-[textarea:focus-visible]:-outline-offset-1 has-[textarea:focus-visible]:outline-accent"
      >
        {onCancelEdit !== null && (
          <div className="flex items-center justify-between border-b border-line ps-4 pe-1 text-xs text-muted">
            {t(props.editReplaces ? 'chat.editing' : 'chat.editingAnew')}
            <IconButton icon={X} label={t('chat.cancelEdit')} onClick={onCancelEdit} />
          </div>
        )}
        {(attached || problem !== null) && (
          <div className="space-y-1.5 px-2 pt-2">
            {attached && <Files files={files.files} onRemove={files.remove} />}
            {problem !== null && (
              <p role={files.problem === null ? 'status' : 'alert'} className="px-1 text-sm text-warning">
                {problem}
              </p>
            )}
          </div>
        )}
        <div className="flex items-end gap-2 p-2">
          {attachable && <AttachButton onFiles={files.add} />}
          <textarea
            ref={area}
            rows={1}
            value={text}
            onChange={(event) => onText(event.target.value)}
            onKeyDown={keys}
            onPaste={paste}
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

function AttachButton({ onFiles }: { onFiles: (files: readonly File[]) => void }) {
  const { t } = useText();
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <IconButton
        icon={Paperclip}
        label={t('files.attach')}
        size="normal"
        onClick={() => input.current?.click()}
      />
      <input
        ref={input}
        type="file"
        multiple
        hidden
        aria-label={t('files.attach')}
        onChange={(event) => {
          onFiles([...(event.target.files ?? [])]);
          // The same file may be chosen again after it was removed.
          event.target.value = '';
        }}
      />
    </>
  );
}
