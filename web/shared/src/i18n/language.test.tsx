// @vitest-environment happy-dom
// Dates and numbers follow the browser within the chosen language.
import { act } from 'react';
import { createRoot } from 'react-dom/client';
import { afterEach, expect, it, vi } from 'vitest';
import { en } from './en';
import { I18nProvider, useI18n } from './i18n';
import { localeOf, type Language } from './language';
import { exact } from './time';

afterEach(() => vi.unstubAllGlobals());

it.each<[Language, string[], string]>([
  ['en', ['en-GB', 'en'], 'en-GB'],
  ['en', ['de-DE', 'en-IE', 'en-US'], 'en-IE'],
  ['en', ['fr', 'de'], 'en'],
  ['en', ['enm', 'not a locale'], 'en'],
  ['en', ['en-??', 'en-GB'], 'en'],
  ['zh', ['en-GB', 'zh-SG'], 'zh-SG'],
  ['zh', ['zh'], 'zh'],
  ['zh', ['zh-TW', 'zh-Hant-HK', 'zh-Hans-HK'], 'zh-Hans-HK'],
  ['zh', ['zh-TW'], 'zh-CN'],
  ['zh', [], 'zh-CN'],
])('%s for a browser that prefers %j: %s', (language, preferred, locale) => {
  expect(localeOf(language, preferred)).toBe(locale);
});

it('a British browser has British dates', () => {
  vi.stubGlobal('IS_REACT_ACT_ENVIRONMENT', true);
  vi.spyOn(navigator, 'languages', 'get').mockReturnValue(['en-GB', 'en']);
  function Day() {
    const { locale } = useI18n();
    return exact(new Date(2026, 10, 5, 15, 30).getTime(), locale);
  }
  const root = createRoot(document.body.appendChild(document.createElement('p')));
  act(() =>
    root.render(
      <I18nProvider
        dictionaries={{ en, load: { zh: () => Promise.resolve(en) } }}
        initial={{ language: 'en', messages: en }}
      >
        <Day />
      </I18nProvider>,
    ),
  );
  expect(document.body.textContent).toBe('5 November 2026 at 15:30');
  act(() => root.unmount());
});
