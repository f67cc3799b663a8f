// Times as people say them ("in 3 hours"), with the exact moment in the person's locale on hover.
import { useEffect, useState } from 'react';
import { useI18n } from './i18n';

const UNITS: readonly (readonly [Intl.RelativeTimeFormatUnit, number])[] = [
  ['year', 365 * 86_400],
  ['month', 30 * 86_400],
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
];

/** Formatters are dear to make and kept: a page may show hundreds of times. */
const made = new Map<
  string,
  { relative: Intl.RelativeTimeFormat; exact: Intl.DateTimeFormat; hour: Intl.DateTimeFormat }
>();

function formats(locale: string) {
  const known = made.get(locale);
  if (known !== undefined) return known;
  const fresh = {
    relative: new Intl.RelativeTimeFormat(locale, { numeric: 'auto' }),
    exact: new Intl.DateTimeFormat(locale, { dateStyle: 'long', timeStyle: 'short' }),
    hour: new Intl.DateTimeFormat(locale, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' }),
  };
  made.set(locale, fresh);
  return fresh;
}

export function relative(moment: number, locale: string, now: number = Date.now()): string {
  const seconds = Math.round((moment - now) / 1000);
  const size = Math.abs(seconds);
  const [unit, length] = UNITS.find(([, unitLength]) => size >= unitLength) ?? ['second', 1];
  return formats(locale).relative.format(Math.round(seconds / length), unit);
}

export function exact(moment: number, locale: string): string {
  return formats(locale).exact.format(moment);
}

/** The time of day alone, as short as it can be said: where the day is clear and room is scarce. */
export function hour(moment: number, locale: string): string {
  return formats(locale).hour.format(moment);
}

/** The current time, renewed every half minute, so that ages on an open page stay true. */
export function useNow(): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 30_000);
    return () => clearInterval(timer);
  }, []);
  return now;
}

export function RelativeTime({ at }: { at: string | number }) {
  const { locale } = useI18n();
  const now = useNow();
  const moment = new Date(at).getTime();
  return (
    <time dateTime={new Date(moment).toISOString()} title={exact(moment, locale)}>
      {relative(moment, locale, now)}
    </time>
  );
}
