// This app's texts, on top of the shared ones; components get them typed by key.
import { useI18n, type Dictionaries } from '@tidepool/shared/i18n/i18n';
import { en } from './en';

export type Key = keyof typeof en;

export const dictionaries: Dictionaries = {
  en,
  load: { zh: async () => (await import('./zh')).zh },
};

export const useText = () => useI18n<Key>();
