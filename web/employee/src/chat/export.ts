// A thread as a file that people can read and keep.
import { exact } from '@tidepool/shared/i18n/time';

interface Line {
  role: 'user' | 'assistant';
  text: string;
  at: number;
}

export function threadMarkdown(
  assistant: string,
  lines: readonly Line[],
  locale: string,
  words: { you: string },
): string {
  const parts = lines
    .filter((line) => line.text !== '')
    .map(
      (line) =>
        `## ${line.role === 'user' ? words.you : assistant} · ${exact(line.at, locale)}\n\n${line.text}\n`,
    );
  return `# ${assistant}\n\n${parts.join('\n')}`;
}
