// @vitest-environment happy-dom
// An empty value is a dash in a table, where its column must stay, and nothing at all on a card.
import type { ReactNode } from 'react';
import { renderToStaticMarkup } from 'react-dom/server';
import { expect, it } from 'vitest';
import { en } from '../i18n/en';
import { I18nProvider } from '../i18n/i18n';
import { Cards, Grid } from './table-rows';

interface Task {
  id: string;
  error: string | null;
  attempts: number;
}

const PROPS = {
  caption: 'Tasks',
  rows: [
    { id: 'well', error: null, attempts: 0 },
    { id: 'ill', error: 'no room', attempts: 3 },
  ],
  rowKey: ({ id }: Task) => id,
  shown: [
    { key: 'id', label: 'Task', cell: ({ id }: Task) => id },
    { key: 'error', label: 'Error', wrap: true, cell: ({ error }: Task) => error },
    { key: 'attempts', label: 'Attempts', cell: ({ attempts }: Task) => attempts },
  ],
  selection: { has: () => false },
  state: { sort: '' },
  query: { isPlaceholderData: false },
} as unknown as Parameters<typeof Cards<Task>>[0];

const dictionaries = { en, load: { zh: () => Promise.resolve(en) } };

/** What each row says, cell by cell. */
function rows(content: ReactNode): string[] {
  const holder = document.createElement('div');
  holder.innerHTML = renderToStaticMarkup(
    <I18nProvider dictionaries={dictionaries} initial={{ language: 'en', messages: en }}>
      {content}
    </I18nProvider>,
  );
  return [...holder.querySelectorAll('[data-row]')].map(({ textContent }) => textContent);
}

it('leaves an empty value out of a card, with its name', () => {
  expect(rows(<Cards {...PROPS} />)).toEqual(['wellAttempts0', 'illErrorno roomAttempts3']);
});

it('shows a dash for it in a table', () => {
  expect(rows(<Grid {...PROPS} />)).toEqual(['well–0', 'illno room3']);
});
