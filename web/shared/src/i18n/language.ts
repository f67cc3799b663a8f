// The languages, and which of them this browser starts with. boot.js sets the document's lang by the same rule.
import { readStored, writeStored } from '../storage';

export const LANGUAGES = ['en', 'zh'] as const;
export type Language = (typeof LANGUAGES)[number];

const KEY = 'tidepool.language';

/** The value of the lang attribute, and the locale of dates and numbers where the browser prefers no other of the language. */
export const LOCALES: Record<Language, string> = { en: 'en', zh: 'zh-CN' };

/** Each language in its own words, the same in every interface language. */
export const LANGUAGE_NAMES: Record<Language, string> = { en: 'English', zh: '简体中文' };

/** Traditional characters in a date would stand beside the simplified ones of the texts. */
const SAME_WRITING: Record<Language, RegExp> = { en: /^en(-|$)/i, zh: /^zh(-(CN|SG|MY|Hans)(-|$)|$)/i };

/** The locale of dates and numbers: the first that the browser prefers of this language. British days come before months. */
export function localeOf(language: Language, preferred: readonly string[] = navigator.languages): string {
  const found = preferred.find((locale) => SAME_WRITING[language].test(locale)) ?? LOCALES[language];
  try {
    return Intl.DateTimeFormat.supportedLocalesOf(found)[0] ?? LOCALES[language];
  } catch {
    // The browser's settings take any text.
    return LOCALES[language];
  }
}

export function initialLanguage(): Language {
  const wanted = readStored(KEY) ?? navigator.language;
  return /^zh/i.test(wanted) ? 'zh' : 'en';
}

export function storeLanguage(language: Language) {
  writeStored(KEY, language);
}
