// The beginning of a long message, for lists: whole lines, and code that is cut in the middle is closed again.
const MOST_LINES = 10;
const MOST_CHARACTERS = 800;

/** The text itself if it is short. */
export function beginningOf(text: string): string {
  const lines: string[] = [];
  let size = 0;
  let fence: string | null = null;
  for (const line of text.split('\n')) {
    if (lines.length === MOST_LINES || (size + line.length > MOST_CHARACTERS && lines.length > 0)) {
      const cut = lines.join('\n').trimEnd();
      return fence === null ? `${cut}\n\n…` : `${cut}\n${fence}\n\n…`;
    }
    const found = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1];
    if (found !== undefined) fence = fence === null ? found : found.startsWith(fence) ? null : fence;
    lines.push(line);
    size += line.length;
  }
  return text;
}
