// A number field takes whole numbers in their range, and nothing that only looks like one.
import { expect, it } from 'vitest';
import { readWholeNumber } from './whole-number';

const range = { min: 64, max: 1_000_000 };

it.each([
  ['512', 512],
  [' 512\t', 512],
  ['64', 64],
  ['1000000', 1_000_000],
  ['００５１２', 512],
  ['', null],
  ['   ', null],
])('reads "%s"', (text, value) => {
  expect(readWholeNumber(text, range)).toEqual({ value });
});

it.each(['many', '512 MB', '5e3', '0x200', '1,024', '1.024', '1 024', '512.0', '-512', '+512', 'NaN', '٥١٢'])(
  'refuses "%s"',
  (text) => {
    expect(readWholeNumber(text, range)).toEqual({ problem: 'not_a_number' });
  },
);

it.each(['0', '63', '1000001', '9'.repeat(400)])('refuses %s as out of range', (text) => {
  expect(readWholeNumber(text, range)).toEqual({ problem: 'out_of_range' });
});
