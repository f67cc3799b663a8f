// Which messages of a thread are in the page: those near the reader, at their measured heights, and those that hold the
// focus or a selection. The thread follows its newest word only while the reader is there.
import { defaultRangeExtractor, elementScroll, useVirtualizer, type Range } from '@tanstack/react-virtual';
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState, type RefObject } from 'react';
import type { Message, Older } from '../engine/types';
import { OLDER_HEIGHT } from './older-row';

/** So many messages beyond each edge of the pane. */
const BEYOND = 4;
/** Coming closer to the end than this is being there; leaving it begins with the first step back. */
const NEAR = 64;
const AT_END = 4;
/** So close to the top, what is older is fetched: before the reader is there. */
const NEAR_TOP = 400;
const PADDING = { start: 16, end: 24 };
/** A selection may keep so many messages. */
const MOST_HELD = 200;
const ANCHORS = CSS.supports('overflow-anchor', 'auto');

export function useWindow(
  messages: readonly Message[],
  older: Older,
  scroller: RefObject<HTMLDivElement | null>,
  onTop: () => void,
) {
  const [following, setFollowing] = useState(true);
  const held = useHeld(scroller);
  const top = useRef(0);

  const rangeExtractor = useMemo(() => {
    const from = held === null ? -1 : messages.findIndex(({ id }) => id === held.from);
    const to = held === null ? -1 : messages.findIndex(({ id }) => id === held.to);
    if (from === -1 || to === -1) return defaultRangeExtractor;
    return (range: Range) => {
      const indexes = new Set(defaultRangeExtractor(range));
      const first = Math.min(from, to);
      for (let at = first; at <= Math.max(from, to) && at < first + MOST_HELD; at += 1) indexes.add(at);
      return [...indexes].sort((a, b) => a - b);
    };
  }, [held, messages]);

  // eslint-disable-next-line react-hooks/incompatible-library -- what it answers is not passed on to memoised components
  const rows = useVirtualizer({
    count: messages.length,
    getScrollElement: () => scroller.current,
    getItemKey: useCallback((index: number) => messages[index]?.id ?? index, [messages]),
    estimateSize: useCallback((index: number) => estimate(messages[index]), [messages]),
    rangeExtractor,
    overscan: BEYOND,
    paddingStart: older === 'nothing' ? PADDING.start : OLDER_HEIGHT,
    paddingEnd: PADDING.end,
    // Drawn in a task of its own: a scroll event that also draws is twice as long.
    useFlushSync: false,
    anchorTo: 'end',
    followOnAppend: following,
    scrollEndThreshold: following ? NEAR : -1,
    scrollToFn: (offset, options, instance) => {
      // Where the page scrolls by itself it is not the reader who leaves.
      top.current = offset + (options.adjustments ?? 0);
      elementScroll(offset, options, instance);
    },
  });

  useLayoutEffect(() => {
    // The browser keeps what is read in its place by itself, without breaking off a scroll that is under way.
    if (ANCHORS) rows.shouldAdjustScrollPositionOnItemSizeChange = () => false;
  }, [rows]);

  const height = rows.getTotalSize();
  const heightBefore = useRef(height);
  useLayoutEffect(() => {
    if (height === heightBefore.current) return;
    heightBefore.current = height;
    // The virtualizer hears of its own scroll to the end a frame later, and takes the reader for gone if the height changes once more
    // before that. Who is really gone is above the place that is known.
    const element = scroller.current;
    if (!following || element === null || element.scrollTop < top.current - 1) return;
    const end = element.scrollHeight - element.clientHeight;
    if (end - element.scrollTop <= AT_END) return;
    top.current = end;
    element.scrollTop = end;
  }, [following, height, scroller]);

  const note = useSteady(older, messages[0]?.id, scroller, top);

  const toEnd = useCallback(() => {
    setFollowing(true);
    rows.scrollToEnd();
  }, [rows]);

  useEnds(scroller, toEnd);

  const onScroll = useCallback(() => {
    const element = scroller.current;
    if (element === null) return;
    const before = top.current;
    top.current = element.scrollTop;
    note();
    const left = element.scrollHeight - element.scrollTop - element.clientHeight;
    if (left <= AT_END || (left < NEAR && element.scrollTop > before)) setFollowing(true);
    else if (element.scrollTop < before - 1) setFollowing(false);
    if (older === 'more' && left >= NEAR && element.scrollTop < NEAR_TOP) onTop();
  }, [scroller, note, older, onTop]);

  const toMessage = useCallback(
    (index: number) => {
      setFollowing(false);
      rows.scrollToIndex(index, { align: 'center' });
      // Where nothing has to move, the reader is still at the end.
      requestAnimationFrame(onScroll);
    },
    [rows, onScroll],
  );

  return {
    items: rows.getVirtualItems(),
    height,
    measure: rows.measureElement,
    following,
    toEnd,
    toMessage,
    onScroll,
  };
}

/**
 * Home and End lead to the thread's ends at once. The browser would glide there, past messages whose heights are only then
 * measured, and stop short.
 */
function useEnds(scroller: RefObject<HTMLDivElement | null>, toEnd: () => void) {
  useEffect(() => {
    const root = scroller.current;
    const press = (event: KeyboardEvent) => {
      const { key, target, altKey, ctrlKey, metaKey, shiftKey } = event;
      if (target !== root || altKey || ctrlKey || metaKey || shiftKey) return;
      if (key !== 'Home' && key !== 'End') return;
      event.preventDefault();
      if (key === 'End') toEnd();
      else root?.scrollTo({ top: 0, behavior: 'instant' });
    };
    root?.addEventListener('keydown', press);
    return () => root?.removeEventListener('keydown', press);
  }, [scroller, toEnd]);
}

/** So close to the top, messages may come before what is read. */
const TOP_PART = 2000;

/**
 * What is read stays in its place when messages come before it. The virtualizer sees to that only as far as it knows how far
 * the page is scrolled, which it hears of a frame later than the browser.
 */
function useSteady(
  older: Older,
  first: string | undefined,
  scrollerRef: RefObject<HTMLDivElement | null>,
  topRef: RefObject<number>,
) {
  const awaited = older === 'more' || older === 'loading' || older === 'failed';
  const readRef = useRef<{ first: string | undefined; message: string; offset: number } | null>(null);
  const note = useCallback(() => {
    const near = awaited && topRef.current <= TOP_PART;
    const row = near && scrollerRef.current !== null ? firstIn(scrollerRef.current) : null;
    readRef.current = row === null ? null : { first, ...row };
  }, [awaited, first, scrollerRef, topRef]);

  useLayoutEffect(() => {
    const root = scrollerRef.current;
    const before = readRef.current;
    if (root !== null && before !== null && before.first !== first) {
      const now = offsetOf(root, before.message);
      if (now !== null) {
        root.scrollBy(0, now - before.offset);
        topRef.current = root.scrollTop;
      }
    }
    note();
  });
  return note;
}

/** The first message in view, and how far below the pane's top it begins. */
function firstIn(root: HTMLElement): { message: string; offset: number } | null {
  const pane = root.getBoundingClientRect().top;
  for (const row of root.querySelectorAll<HTMLElement>('[data-message]')) {
    const { top, bottom } = row.getBoundingClientRect();
    if (bottom > pane) return { message: row.dataset.message ?? '', offset: top - pane };
  }
  return null;
}

function offsetOf(root: HTMLElement, message: string): number | null {
  const row = root.querySelector(`[data-message="${CSS.escape(message)}"]`);
  return row === null ? null : row.getBoundingClientRect().top - root.getBoundingClientRect().top;
}

/** Before a message was measured: from its length, as most are. */
function estimate(message: Message | undefined): number {
  if (message === undefined) return 0;
  const lines = Math.ceil(message.text.length / 60);
  return message.role === 'user' ? 68 + lines * 24 : 72 + lines * 26;
}

interface Held {
  from: string;
  to: string;
}

/** The messages, first to last, that hold the focus or the selection. */
function useHeld(scroller: RefObject<HTMLDivElement | null>): Held | null {
  const [held, setHeld] = useState<Held | null>(null);
  useEffect(() => {
    const look = () => {
      const root = scroller.current;
      const { anchorNode, focusNode, isCollapsed = true } = document.getSelection() ?? {};
      const from = isCollapsed ? null : idAround(anchorNode ?? null, root);
      const to = isCollapsed ? null : idAround(focusNode ?? null, root);
      const focused = idAround(document.activeElement, root);
      const one = from ?? to ?? focused;
      const next = one === null ? null : { from: from ?? one, to: to ?? one };
      setHeld((now) => (now?.from === next?.from && now?.to === next?.to ? now : next));
    };
    document.addEventListener('selectionchange', look);
    document.addEventListener('focusin', look);
    document.addEventListener('focusout', look);
    return () => {
      document.removeEventListener('selectionchange', look);
      document.removeEventListener('focusin', look);
      document.removeEventListener('focusout', look);
    };
  }, [scroller]);
  return held;
}

function idAround(node: Node | null, root: HTMLElement | null): string | null {
  if (node === null || !root?.contains(node)) return null;
  const element = node instanceof Element ? node : node.parentElement;
  return element?.closest<HTMLElement>('[data-message]')?.dataset.message ?? null;
}
