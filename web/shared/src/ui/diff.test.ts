// A difference must lead from the one text to the other, and change as little as can be.
import { expect, it } from 'vitest';
import { diffLines } from './diff';

function sides(before: string, after: string) {
  const lines = diffLines(before, after);
  const text = (kinds: string[]) =>
    lines
      .filter(({ kind }) => kinds.includes(kind))
      .map((line) => line.text)
      .join('\n');
  return { lines, before: text(['same', 'removed']), after: text(['same', 'added']) };
}

it.each([
  ['a\nb\nc', 'a\nx\nc'],
  ['a\nb', 'a\nb\nc\nd'],
  ['one\ntwo\nthree\nfour', 'zero\ntwo\nfour\nfive'],
  ['', 'a'],
  ['same', 'same'],
])('rebuilds both sides of %j → %j', (before, after) => {
  const found = sides(before, after);
  expect(found.before).toBe(before);
  expect(found.after).toBe(after);
});

it('keeps what both have', () => {
  expect(sides('a\nb\nc\nd', 'b\nc\nd\ne').lines.filter(({ kind }) => kind === 'same')).toHaveLength(3);
});
