// Amounts of money and tokens as people read them.

/** Formatters are dear to make and kept: every reply of a thread shows three amounts. */
const made = new Map<string, Intl.NumberFormat>();

function formatOf(locale: string, kind: string, options?: Intl.NumberFormatOptions): Intl.NumberFormat {
  const key = `${locale} ${kind}`;
  let format = made.get(key);
  if (format === undefined) {
    format = new Intl.NumberFormat(locale, options);
    made.set(key, format);
  }
  return format;
}

/** Two decimals; what is more than nothing and less than a cent says so, instead of looking like nothing. */
export function usd(amount: number, locale: string): string {
  const format = formatOf(locale, 'usd', {
    style: 'currency',
    currency: 'USD',
    currencyDisplay: 'narrowSymbol',
  });
  return amount > 0 && amount < 0.005 ? `<${format.format(0.01)}` : format.format(amount);
}

/** 1,234 stays; 12,345 becomes 12.3K. */
export function compact(amount: number, locale: string): string {
  if (Math.abs(amount) < 10_000) return formatOf(locale, 'whole').format(amount);
  return formatOf(locale, 'compact', { notation: 'compact', maximumFractionDigits: 1 }).format(amount);
}

export function seconds(milliseconds: number, locale: string): string {
  const digits = milliseconds < 10_000 ? 1 : 0;
  return formatOf(locale, `seconds ${digits}`, {
    style: 'unit',
    unit: 'second',
    unitDisplay: 'narrow',
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  }).format(milliseconds / 1000);
}
