// Numbers as the console writes them: money with two decimals, tokens short with the whole number at hand, bytes.
import { useMemo } from 'react';
import { useText } from './messages';

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const;

export function useFormat() {
  const { locale } = useText();
  return useMemo(() => {
    const dollars = new Intl.NumberFormat(locale, {
      style: 'currency',
      currency: 'USD',
      currencyDisplay: 'narrowSymbol',
    });
    const fine = new Intl.NumberFormat(locale, {
      style: 'currency',
      currency: 'USD',
      currencyDisplay: 'narrowSymbol',
      maximumFractionDigits: 6,
    });
    const short = new Intl.NumberFormat(locale, { notation: 'compact', maximumFractionDigits: 1 });
    const fraction = new Intl.NumberFormat(locale, { maximumFractionDigits: 1 });
    const day = new Intl.DateTimeFormat(locale, { month: 'short', day: 'numeric', timeZone: 'UTC' });
    return {
      money: (usd: number) => dollars.format(usd),
      fineMoney: (usd: number) => fine.format(usd),
      short: (amount: number) => short.format(amount),
      percent: (value: number) => `${fraction.format(value)} %`,
      /** A local day as the server names it, YYYY-MM-DD. */
      day: (date: string) => day.format(new Date(`${date}T00:00:00Z`)),
      bytes: (size: number) => {
        const at = UNITS.findIndex((_, power) => size < 1024 ** (power + 1));
        const power = at === -1 ? UNITS.length - 1 : at;
        return `${fraction.format(size / 1024 ** power)} ${UNITS[power]}`;
      },
      /** A number of MiB that somebody set: exact, in GiB where it is a whole number of them. */
      mebibytes: (size: number) =>
        size % 1024 === 0 ? `${fraction.format(size / 1024)} GiB` : `${fraction.format(size)} MiB`,
      duration: (ms: number) =>
        ms < 1000
          ? `${ms} ms`
          : ms < 60_000
            ? `${(ms / 1000).toFixed(1)} s`
            : `${Math.round(ms / 60_000)} min`,
    };
  }, [locale]);
}
