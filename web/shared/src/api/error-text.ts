// What a person reads when a request fails: our own words for the codes we know, else the server's message.
import type { I18n, SharedKey } from '../i18n/i18n';
import { relative } from '../i18n/time';
import { ApiError } from './envelope';

const KNOWN: Readonly<Record<string, SharedKey>> = {
  4010: 'error.4010',
  4011: 'error.4011',
  4030: 'error.4030',
  4031: 'error.4031',
  4040: 'error.4040',
  4290: 'error.4290',
  5000: 'error.5000',
  5030: 'error.5030',
  5040: 'error.5040',
  network: 'error.network',
  malformed: 'error.malformed',
};

export function errorText(error: unknown, { t, locale }: Pick<I18n<SharedKey>, 't' | 'locale'>): string {
  if (!(error instanceof ApiError)) return t('error.malformed');
  if (error.status === 429 && error.code === '4290' && error.retryAfter !== null) {
    const now = Date.now();
    return t('error.4290after', { when: relative(now + error.retryAfter * 1000, locale, now) });
  }
  const key = KNOWN[error.code];
  return key === undefined ? error.msg : t(key);
}
