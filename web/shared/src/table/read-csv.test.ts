// What spreadsheets write is read as it was meant, and what we write ourselves is read back.
import { expect, it } from 'vitest';
import { toCsv } from './csv';
import { readCsv } from './read-csv';

const cells = (text: string) => readCsv(text).lines.map((line) => line.cells);

it.each([',', ';', '\t'])('reads cells that are separated by %j', (separator) => {
  const text = ['user', 'email'].join(separator) + '\n' + ['ada', 'ada@b.test'].join(separator);
  expect(cells(text)).toEqual([
    ['user', 'email'],
    ['ada', 'ada@b.test'],
  ]);
});

it('reads quotes: separators, line breaks and quotes stand for themselves in them', () => {
  expect(cells('name,email\r\n"Ada, ""the first""", ada@b.test\r\n"two\r\nlines",b@b.test')).toEqual([
    ['name', 'email'],
    ['Ada, "the first"', 'ada@b.test'],
    ['two\nlines', 'b@b.test'],
  ]);
});

it('keeps a quote in the middle of a cell', () => {
  expect(cells('name\nthe 5" one')).toEqual([['name'], ['the 5" one']]);
});

it('takes the separator of the header, outside of its quotes', () => {
  expect(cells('"a,b,c";email\nx,y;e@b.test')).toEqual([
    ['a,b,c', 'email'],
    ['x,y', 'e@b.test'],
  ]);
});

it('counts lines as an editor does, and leaves out empty ones', () => {
  const { lines } = readCsv('\uFEFFuser,email\n\n , \n"a\nb",c\nd,e\n');
  expect(lines.map(({ line }) => line)).toEqual([1, 4, 6]);
});

it('says where a quote begins that never ends', () => {
  expect(readCsv('user,email\nada,"ada@b.test\nbob,bob@b.test')).toEqual({
    lines: [{ line: 1, cells: ['user', 'email'] }],
    unclosed: 2,
  });
});

it.each(['', '\n\n', '\uFEFF'])('finds nothing in %j', (text) => {
  expect(readCsv(text)).toEqual({ lines: [] });
});

it('reads what we write', () => {
  const rows = [
    ['a;b', 'say "hi"'],
    ['two\nlines', '\ttab'],
  ];
  // An apostrophe keeps a spreadsheet from taking the last for a formula; it stays.
  expect(cells(toCsv(['one', 'two'], rows))).toEqual([
    ['one', 'two'],
    ['a;b', 'say "hi"'],
    ['two\nlines', "'\ttab"],
  ]);
});
