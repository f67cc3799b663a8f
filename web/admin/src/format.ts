// Numbers as the console writes them: money with two decimals, tokens short with the whole number at hand, bytes.
import { useMemo } from 'react';
import { useText } from './messages';

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
    const percent = new Intl.NumberFormat(locale, { maximumFractionDigits: 1 });
    const day = new Intl.DateTimeFormat(locale, { month: 'short', day: 'numeric', timeZone: 'UTC' });
    return {
      money: (usd: number) => dollars.format(usd),
      fineMoney: (usd: number) => fine.format(usd),
      short: (amount: number) => short.format(amount),
      percent: (value: number) => `${percent.format(value)} %`,
      /** A local day as the server names it, YYYY-MM-DD. */
      day: (date: string) => day.format(new Date(`${date}T00:00:00Z`)),
      bytes: (size: number) =>
        size < 1024
          ? `${size} B`
          : size < 1024 * 1024
            ? `${(size / 1024).toFixed(1)} KB`
            : `${(size / 1024 / 1024).toFixed(1)} MB`,
      duration: (ms: number) =>
        ms < 1000
          ? `${ms} ms`
          : ms < 60_000
            ? `${(ms / 1000).toFixed(1)} s`
            : `${Math.round(ms / 60_000)} min`,
    };
  }, [locale]);
}
