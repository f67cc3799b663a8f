// The languages, and which of them this browser starts with. boot.js sets the document's lang by the same rule.
import { readStored, writeStored } from '../storage';

export const LANGUAGES = ['en', 'zh'] as const;
export type Language = (typeof LANGUAGES)[number];

const KEY = 'tidepool.language';

/** The value of the lang attribute, and the locale of dates and numbers. */
export const LOCALES: Record<Language, string> = { en: 'en', zh: 'zh-CN' };

/** Each language in its own words, the same in every interface language. */
export const LANGUAGE_NAMES: Record<Language, string> = { en: 'English', zh: '简体中文' };

export function initialLanguage(): Language {
  const wanted = readStored(KEY) ?? navigator.language;
  return /^zh/i.test(wanted) ? 'zh' : 'en';
}

export function storeLanguage(language: Language) {
  writeStored(KEY, language);
}
