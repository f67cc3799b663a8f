// Where a text stands: in which messages of a thread, and where in those that are in the page.
import type { Message } from '../engine/types';

/** The places of the messages that have the text, whatever its case; none for an empty text. */
export function matching(messages: readonly Message[], text: string): number[] {
  const wanted = text.trim().toLowerCase();
  if (wanted === '') return [];
  return messages.flatMap((message, index) => (message.text.toLowerCase().includes(wanted) ? [index] : []));
}

/** Where the text is to be seen below `root`, within one element's text each. */
export function rangesOf(root: Element, text: string): Range[] {
  const wanted = text.trim().toLowerCase();
  if (wanted === '') return [];
  const ranges: Range[] = [];
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
    const content = node.textContent?.toLowerCase() ?? '';
    for (let at = content.indexOf(wanted); at !== -1; at = content.indexOf(wanted, at + wanted.length)) {
      // Lower case may be longer than what was written.
      if (at + wanted.length > (node.textContent?.length ?? 0)) break;
      const range = document.createRange();
      range.setStart(node, at);
      range.setEnd(node, at + wanted.length);
      ranges.push(range);
    }
  }
  return ranges;
}
