// Words follow their number by the rules of the language.
import { expect, it } from 'vitest';
import { en } from './en';
import { fill } from './translate';
import { zh } from './zh';

const LINES = 'File {name}: {count} {count, plural, one {line deserves} other {lines deserve}} a look';

it.each([
  [0, 'File a: 0 lines deserve a look'],
  [1, 'File a: 1 line deserves a look'],
  ['1', 'File a: 1 line deserves a look'],
  [2, 'File a: 2 lines deserve a look'],
  ['1,000', 'File a: 1,000 lines deserve a look'],
  ['1.2K', 'File a: 1.2K lines deserve a look'],
])('%s in English', (count, text) => {
  expect(fill(LINES, { name: 'a', count }, 'en')).toBe(text);
});

it('takes the category of the language, and the last form where a text has none for it', () => {
  const text = '{n} {n, plural, one {a} few {b} many {c} other {d}}';
  expect([1, 3, 5, 1.5].map((n) => fill(text, { n }, 'pl'))).toEqual(['1 a', '3 b', '5 c', '1.5 d']);
  expect(fill(LINES, { name: 'a', count: 1 }, 'zh')).toContain('1 lines');
});

it('holds for the texts', () => {
  expect([1, 2].map((count) => fill(en['palette.found'], { count }, 'en'))).toEqual([
    '1 result',
    '2 results',
  ]);
  expect([1, 2].map((count) => fill(zh['palette.found'], { count }, 'zh'))).toEqual(['1 条结果', '2 条结果']);
});
