// Reads and writes the text of number fields. A text that has no reading, or more than one, is refused and never taken
// for another number.
import type { I18n, SharedKey } from '../i18n/i18n';
import { FieldProblems } from './field-problems';
import { fieldText } from './form';

export interface NumberRange {
  readonly min: number;
  readonly max: number;
  /** The most digits after the decimal separator; without it, whole numbers only. */
  readonly decimals?: number;
}

export type NumberProblem =
  'missing' | 'not_a_number' | 'ambiguous' | 'not_whole' | 'too_many_decimals' | 'out_of_range';

export type ReadNumber = { readonly value: number } | { readonly problem: NumberProblem };

/**
 * Reads a number with the separators of the locale; groups of three digits may also have a space between them. Where the
 * locale's decimal separator stands before three digits and the field takes fewer decimals, as in "1.000" tokens, the
 * text is ambiguous: others write a thousand like that. Twice, as in "1.000.000", it can only group.
 */
export function readNumber(text: string, range: NumberRange, locale: string): ReadNumber {
  const { min, max, decimals = 0 } = range;
  const { group, decimal } = separatorsOf(locale);
  const written = plain(text).trim();
  if (written === '') return { problem: 'missing' };
  const sign = written.startsWith('-') ? '-' : '';
  const unsigned = written.slice(sign.length);
  const [before = '', after, ...more] = unsigned.split(decimal);
  let digits: string | null;
  if (more.length > 0) digits = ungrouped(unsigned, decimal);
  else if (before === '' && after !== undefined) digits = '0';
  else digits = ungrouped(before, group) ?? ungrouped(before, ' ');
  const fraction = more.length > 0 ? undefined : after;
  if (digits === null || (fraction !== undefined && !/^[0-9]+$/.test(fraction)))
    return { problem: 'not_a_number' };
  if (fraction !== undefined && fraction.length > decimals) {
    if (/^[1-9][0-9]{0,2}$/.test(before) && fraction.length === 3) return { problem: 'ambiguous' };
    return { problem: decimals === 0 ? 'not_whole' : 'too_many_decimals' };
  }
  const value = Number(`${sign}${digits}.${fraction ?? 0}`);
  if (value < min || value > max) return { problem: 'out_of_range' };
  // Minus zero is zero.
  return { value: value + 0 };
}

/** As `readNumber` reads it again: without groups, and without the exponent that JavaScript gives to small numbers. */
export function writeNumber(value: number, locale: string): string {
  return new Intl.NumberFormat(locale, { useGrouping: false, maximumFractionDigits: 20 }).format(value);
}

/** The digits of a whole number, plain or in groups of three; null where it is neither. A group does not begin with zero: "0,002" is no 2. */
function ungrouped(text: string, separator: string): string | null {
  if (/^[0-9]+$/.test(text)) return text;
  const [first = '', ...groups] = text.split(separator);
  const isGrouped = /^[1-9][0-9]{0,2}$/.test(first) && groups.every((three) => /^[0-9]{3}$/.test(three));
  return isGrouped ? first + groups.join('') : null;
}

function separatorsOf(locale: string): { group: string; decimal: string } {
  const parts = new Intl.NumberFormat(locale).formatToParts(-12_345.6);
  const valueOf = (type: string) => plain(parts.find((part) => part.type === type)?.value ?? '');
  return { group: valueOf('group'), decimal: valueOf('decimal') };
}

/** Full-width characters, which input methods for Chinese write, all kinds of spaces and the minus sign as the plain ones. */
function plain(text: string): string {
  return text
    .replace(/[！-～]/g, (wide) => String.fromCharCode(wide.charCodeAt(0) - 0xfee0))
    .replace(/\s/g, ' ')
    .replace('−', '-');
}

/** A number of a form; `none` names the choice beside its field that stands for no number. */
export interface NumberSpec extends NumberRange {
  readonly none?: string;
}

type Values<Specs> = {
  [Name in keyof Specs]: Specs[Name] extends { none: string } ? number | null : number;
};

/** The name of the box that stands for no number. */
export const noneOf = (name: string) => `${name}_none`;

/** The numbers of a form by the names of their fields, null where no number was chosen. Throws `FieldProblems` for those it refuses. */
export function readNumbers<const Specs extends Readonly<Record<string, NumberSpec>>>(
  data: FormData,
  specs: Specs,
  i18n: Pick<I18n<SharedKey>, 't' | 'number' | 'locale'>,
): Values<Specs> {
  const values: Record<string, number | null> = {};
  const problems: Record<string, string> = {};
  for (const [name, spec] of Object.entries(specs)) {
    const read = readNumber(fieldText(data, name), spec, i18n.locale);
    if ('value' in read) values[name] = read.value;
    else if (read.problem === 'missing' && spec.none !== undefined && data.has(noneOf(name)))
      values[name] = null;
    else problems[name] = problemText(read.problem, spec, i18n);
  }
  if (Object.keys(problems).length > 0) throw new FieldProblems(problems);
  return values as Values<Specs>;
}

function problemText(
  problem: NumberProblem,
  { min, max, decimals, none }: NumberSpec,
  { t, number }: Pick<I18n<SharedKey>, 't' | 'number'>,
): string {
  switch (problem) {
    case 'missing':
      return none === undefined ? t('number.missing') : t('number.missingOrNone', { none });
    case 'not_a_number':
      return t('number.notANumber');
    case 'ambiguous':
      return t('number.ambiguous');
    case 'not_whole':
      return t('number.notWhole');
    case 'too_many_decimals':
      return t('number.tooManyDecimals', { decimals: decimals ?? 0 });
    case 'out_of_range':
      return t('number.outOfRange', { min: number(min), max: number(max) });
  }
}
