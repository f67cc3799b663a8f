// Finds a text in the whole open conversation, also where it is not in the page: the browser's own search sees only what is near.
import { IconButton } from '@tidepool/shared/ui/icon-button';
import { ChevronDown, ChevronUp, X } from 'lucide-react';
import { useEffect, useMemo, useRef, useState, type KeyboardEvent, type RefObject } from 'react';
import { useText } from '../../messages';
import type { Message } from '../engine/types';
import { matching, rangesOf } from './matches';

interface FindBarProps {
  messages: readonly Message[];
  scroller: RefObject<HTMLElement | null>;
  /** Changes with what is in the page. */
  drawn: unknown;
  onGo: (index: number) => void;
  onClose: () => void;
}

export default function FindBar({ messages, scroller, drawn, onGo, onClose }: FindBarProps) {
  const { t } = useText();
  const input = useRef<HTMLInputElement>(null);
  const [text, setText] = useState('');
  /** The message that is looked at, of those that match; before the first step it is the newest. */
  const [at, setAt] = useState<string | null>(null);
  const found = useMemo(() => matching(messages, text), [messages, text]);
  const place = found.findIndex((index) => messages[index]?.id === at);
  const current = found[place];

  useEffect(() => input.current?.focus(), []);
  useMarks(scroller, text, drawn, current);

  function go(step: number, among = found) {
    const from = among === found && place !== -1 ? place + step : among.length - 1;
    const index = among[(from + among.length) % among.length];
    if (index === undefined) return;
    setAt(messages[index]?.id ?? null);
    onGo(index);
  }

  function keys(event: KeyboardEvent) {
    if (event.key === 'Enter') go(event.shiftKey ? 1 : -1);
    else if (event.key === 'Escape') onClose();
    else return;
    event.preventDefault();
  }

  return (
    <search
      aria-label={t('find.label')}
      className="fade-in absolute end-3 top-2 z-10 flex max-w-[calc(100%-1.5rem)] items-center gap-0.5 rounded-xl border border-line bg-surface p-1 shadow-high"
    >
      <input
        ref={input}
        type="text"
        value={text}
        onChange={(event) => {
          setText(event.target.value);
          go(0, matching(messages, event.target.value));
        }}
        onKeyDown={keys}
        aria-label={t('find.label')}
        placeholder={t('find.label')}
        className="min-h-8 w-52 min-w-0 rounded-md bg-transparent px-2 text-base sm:text-sm"
      />
      <span role="status" className="shrink-0 px-1 text-xs text-muted tabular-nums">
        {text.trim() === ''
          ? ''
          : found.length === 0
            ? t('find.none')
            : t('find.count', { at: place === -1 ? found.length : place + 1, all: found.length })}
      </span>
      <IconButton icon={ChevronUp} label={t('find.earlier')} onClick={() => go(-1)} />
      <IconButton icon={ChevronDown} label={t('find.later')} onClick={() => go(1)} />
      <IconButton icon={X} label={t('find.close')} onClick={onClose} />
    </search>
  );
}

/** What was said, without what stands around it. */
const said = (root: Element) => [...root.querySelectorAll('[data-said]')];

/** Marks the text wherever it is to be seen, without touching what React drew, and brings the first mark of the message into view. */
function useMarks(
  scroller: RefObject<HTMLElement | null>,
  text: string,
  drawn: unknown,
  current: number | undefined,
) {
  const shown = useRef('');
  useEffect(() => {
    const root = scroller.current;
    if (root === null || !('highlights' in CSS)) return;
    CSS.highlights.set('find', new Highlight(...said(root).flatMap((one) => rangesOf(one, text))));
    const row = current === undefined ? null : root.querySelector(`[data-index="${current}"]`);
    const mark = row === null ? undefined : said(row).flatMap((one) => rangesOf(one, text))[0];
    if (mark === undefined || shown.current === `${current} ${text}`) return;
    shown.current = `${current} ${text}`;
    CSS.highlights.set('found', new Highlight(mark));
    const pane = root.getBoundingClientRect();
    const { top, bottom } = mark.getBoundingClientRect();
    if (top < pane.top + 56 || bottom > pane.bottom) root.scrollBy({ top: top - pane.top - pane.height / 3 });
  }, [scroller, text, drawn, current]);
  useEffect(
    () => () => {
      if (!('highlights' in CSS)) return;
      CSS.highlights.delete('find');
      CSS.highlights.delete('found');
    },
    [],
  );
}
