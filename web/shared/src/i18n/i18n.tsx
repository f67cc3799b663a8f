// Gives components their texts, locale and formats, and changes the language while the page is open.
import { createContext, use, useCallback, useMemo, useState, type ReactNode } from 'react';
import type { en } from './en';
import { initialLanguage, localeOf, LOCALES, storeLanguage, type Language } from './language';
import { fill, type Messages, type Values } from './translate';

export type SharedKey = keyof typeof en;

export interface I18n<Key extends string> {
  language: Language;
  locale: string;
  setLanguage: (language: Language) => Promise<void>;
  t: (key: Key, values?: Values) => string;
  number: (value: number) => string;
}

/** English is part of the first load; another language is fetched when it is chosen. */
export interface Dictionaries {
  en: Messages;
  load: Record<Exclude<Language, 'en'>, () => Promise<Messages>>;
}

export interface Loaded {
  language: Language;
  messages: Messages;
}

const Context = createContext<I18n<string> | null>(null);

/** English stands in when the other language's file cannot be fetched: a readable page is worth more than none. */
export async function loadLanguage(
  dictionaries: Dictionaries,
  language = initialLanguage(),
): Promise<Loaded> {
  if (language !== 'en') {
    try {
      return { language, messages: await dictionaries.load[language]() };
    } catch {
      return { language: 'en', messages: dictionaries.en };
    }
  }
  return { language, messages: dictionaries.en };
}

interface ProviderProps {
  dictionaries: Dictionaries;
  initial: Loaded;
  children: ReactNode;
}

export function I18nProvider({ dictionaries, initial, children }: ProviderProps) {
  const [loaded, setLoaded] = useState(initial);

  const setLanguage = useCallback(
    async (language: Language) => {
      const next = await loadLanguage(dictionaries, language);
      storeLanguage(language);
      document.documentElement.lang = LOCALES[next.language];
      setLoaded(next);
    },
    [dictionaries],
  );

  const value = useMemo<I18n<string>>(() => {
    const { language, messages } = loaded;
    const locale = localeOf(language);
    const format = new Intl.NumberFormat(locale);
    return {
      language,
      locale,
      setLanguage,
      t: (key, values) => fill(messages[key] ?? key, values, language),
      number: (amount) => format.format(amount),
    };
  }, [loaded, setLanguage]);

  return <Context value={value}>{children}</Context>;
}

/** Shared components use it as it is; an app narrows it to its own keys once. */
export function useI18n<Key extends string = SharedKey>(): I18n<Key> {
  const value = use(Context);
  if (value === null) throw new Error('useI18n outside I18nProvider');
  return value;
}
