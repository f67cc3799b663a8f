// A number field takes what has one reading in the person's language, and refuses everything else.
import { describe, expect, it } from 'vitest';
import { en } from '../i18n/en';
import { fill, type Values } from '../i18n/translate';
import { FieldProblems } from './field-problems';
import { readNumber, readNumbers, writeNumber, type NumberRange } from './number';

const WHOLE: NumberRange = { min: 0, max: 1_000_000_000 };
const CENTS: NumberRange = { min: 0, max: 1_000_000_000, decimals: 2 };
const PRICE: NumberRange = { min: 0, max: 1_000_000, decimals: 9 };
const SIGNED: NumberRange = { min: -1000, max: 1000 };
const LOCALES = ['en', 'zh-CN'];

describe.each(LOCALES)('in %s', (locale) => {
  it.each<[string, NumberRange, number]>([
    ['0', WHOLE, 0],
    ['512', WHOLE, 512],
    [' 512\t', WHOLE, 512],
    ['00512', WHOLE, 512],
    ['1000000000', WHOLE, 1_000_000_000],
    ['1,000', WHOLE, 1000],
    ['1,234,567', WHOLE, 1_234_567],
    ['12,345', WHOLE, 12_345],
    ['1 000', WHOLE, 1000],
    ['1\u{a0}000\u{a0}000', WHOLE, 1_000_000],
    ['1\u{202f}000', WHOLE, 1000],
    // Nothing has two decimal separators, so that these can only group.
    ['1.000.000', WHOLE, 1_000_000],
    ['1.000.000', CENTS, 1_000_000],
    ['５１２', WHOLE, 512],
    ['１，０００', WHOLE, 1000],
    ['5', CENTS, 5],
    ['1.5', CENTS, 1.5],
    ['1.50', CENTS, 1.5],
    ['.5', CENTS, 0.5],
    ['0.05', CENTS, 0.05],
    ['１．５', CENTS, 1.5],
    ['1,000', CENTS, 1000],
    ['1,000.50', CENTS, 1000.5],
    ['1 000.50', CENTS, 1000.5],
    ['0.003', PRICE, 0.003],
    ['0.000000001', PRICE, 0.000000001],
    ['1.000', PRICE, 1],
    ['-5', SIGNED, -5],
    ['−5', SIGNED, -5],
    ['－5', SIGNED, -5],
    ['-1,000', SIGNED, -1000],
    ['-0', SIGNED, 0],
  ])('reads "%s"', (text, range, value) => {
    expect(readNumber(text, range, locale)).toEqual({ value });
  });

  it.each(['', ' ', '\t\n', '\u{3000}'])('misses a number in "%s"', (text) => {
    expect(readNumber(text, WHOLE, locale)).toEqual({ problem: 'missing' });
  });

  it.each([
    ...['abc', '100k', '1M', '512 MB', '5 %', '$5', '5$', '1万', '5e3', '1e-3', '0x200', '0b1', '1_000'],
    ...[
      'NaN',
      'Infinity',
      '-Infinity',
      'null',
      '-',
      '+512',
      '--5',
      '- 5',
      '5-',
      '(5)',
      '1/2',
      '٥١٢',
      '10²',
      '½',
      '①',
    ],
    ...['1,5', '1,00', '1,0000', '1,00,000', ',100', '100,', '1,,000', '1 00', '1,000 000', '0,002', '0,500'],
    ...['1.', '.', '1..000', '1.000,50', '1.000.00', '1,000.000.000', '0.000.001', '1.5.2'],
  ])('refuses "%s"', (text) => {
    for (const range of [WHOLE, CENTS, PRICE, SIGNED])
      expect(readNumber(text, range, locale)).toEqual({ problem: 'not_a_number' });
  });

  it.each<[string, NumberRange]>([
    ['1.000', WHOLE],
    ['100.000', WHOLE],
    ['-1.000', SIGNED],
    ['1.000', CENTS],
    ['12.345', CENTS],
  ])('does not decide what "%s" means', (text, range) => {
    expect(readNumber(text, range, locale)).toEqual({ problem: 'ambiguous' });
  });

  it.each(['1.5', '0.5', '.5', '1.0', '1000.000', '1,000.5', '0.500'])('wants "%s" to be whole', (text) => {
    expect(readNumber(text, WHOLE, locale)).toEqual({ problem: 'not_whole' });
  });

  it.each<[string, NumberRange]>([
    ['0.001', CENTS],
    ['1.2345', CENTS],
    ['0.0000000001', PRICE],
  ])('refuses the decimals of "%s", which would be lost', (text, range) => {
    expect(readNumber(text, range, locale)).toEqual({ problem: 'too_many_decimals' });
  });

  it.each<[string, NumberRange]>([
    ['63', { min: 64, max: 100 }],
    ['101', { min: 64, max: 100 }],
    ['0', { min: 1, max: 10 }],
    ['-1', WHOLE],
    ['-0.01', CENTS],
    ['9'.repeat(400), WHOLE],
  ])('refuses %s as out of range', (text, range) => {
    expect(readNumber(text, range, locale)).toEqual({ problem: 'out_of_range' });
  });

  it.each([0, 7, 1000, 1_000_000, 0.003, 0.0000005, 0.000000001, -12.5, 82.55])(
    'reads %s again as it writes it',
    (value) => {
      const range = { min: -100, max: 1_000_000, decimals: 9 };
      expect(readNumber(writeNumber(value, locale), range, locale)).toEqual({ value });
    },
  );
});

it('goes by the separators of the language', () => {
  expect(readNumber('1.000', WHOLE, 'de')).toEqual({ value: 1000 });
  expect(readNumber('1,000', WHOLE, 'de')).toEqual({ problem: 'ambiguous' });
  expect(readNumber('1.000,5', CENTS, 'de')).toEqual({ value: 1000.5 });
  expect(readNumber('1\u{202f}000,5', CENTS, 'fr')).toEqual({ value: 1000.5 });
});

describe('the numbers of a form', () => {
  const i18n = {
    locale: 'en',
    t: (key: keyof typeof en, values?: Values) => fill(en[key], values, 'en'),
    number: (value: number) => value.toLocaleString('en'),
  };
  const SPECS = { port: { min: 1, max: 65_535 }, limit: { ...CENTS, none: 'No limit' } };

  function form(fields: Record<string, string>): FormData {
    const data = new FormData();
    for (const [name, value] of Object.entries(fields)) data.set(name, value);
    return data;
  }

  function problems(fields: Record<string, string>) {
    try {
      readNumbers(form(fields), SPECS, i18n);
    } catch (error) {
      if (error instanceof FieldProblems) return error.fields;
      throw error;
    }
    return {};
  }

  it('are those of their fields, null where no number is chosen', () => {
    expect(readNumbers(form({ port: '22', limit: '1,000' }), SPECS, i18n)).toEqual({ port: 22, limit: 1000 });
    expect(readNumbers(form({ port: '22', limit: '', limit_none: 'on' }), SPECS, i18n)).toEqual({
      port: 22,
      limit: null,
    });
  });

  it('are none without that choice', () => {
    expect(problems({ port: '22', limit: '' })).toEqual({
      limit: 'Enter a number, or choose “No limit”.',
    });
    expect(problems({ port: '22' })).toHaveProperty('limit');
  });

  it('are not none where a number was written, nor where there is no such choice', () => {
    expect(problems({ port: '22', limit: 'abc', limit_none: 'on' })).toHaveProperty('limit');
    expect(problems({ port: '', port_none: 'on', limit: '1' })).toEqual({ port: 'Enter a number.' });
  });

  it('are refused together, each with its reason', () => {
    expect(problems({ port: '70,000', limit: '100k' })).toEqual({
      port: 'It must be from 1 to 65,535.',
      limit: en['number.notANumber'],
    });
    expect(problems({ port: '1.5', limit: '0.001' })).toEqual({
      port: 'Enter a whole number.',
      limit: 'At most 2 decimals are possible.',
    });
    expect(problems({ port: '1.000', limit: '1.000' })).toEqual({
      port: en['number.ambiguous'],
      limit: en['number.ambiguous'],
    });
  });
});
