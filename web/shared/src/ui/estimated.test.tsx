// @vitest-environment happy-dom
// A number that is an estimate says so to everybody, in words.
import { renderToStaticMarkup } from 'react-dom/server';
import { expect, it } from 'vitest';
import { en } from '../i18n/en';
import { I18nProvider } from '../i18n/i18n';
import { zh } from '../i18n/zh';
import { EstimatedMark } from './estimated';

const dictionaries = { en, load: { zh: () => Promise.resolve(zh) } };

it.each([
  ['en', en, 'Estimated:'],
  ['zh', zh, '估算值'],
] as const)('says why in %s, on hover and read out, and only where it is one', (language, messages, word) => {
  const holder = document.createElement('div');
  holder.innerHTML = renderToStaticMarkup(
    <I18nProvider dictionaries={dictionaries} initial={{ language, messages }}>
      <EstimatedMark when={false} />
      <EstimatedMark when={true} />
    </I18nProvider>,
  );
  const marks = holder.querySelectorAll('span');
  expect(marks).toHaveLength(1);
  expect(marks[0]?.title).toContain(word);
  expect(marks[0]?.getAttribute('aria-label')).toBe(marks[0]?.title);
  expect(marks[0]?.textContent).toContain('≈');
});
