// CSV survives the way out and back, and carries no formulas.
import { expect, it } from 'vitest';
import { csvCell, parseCsv, toCsv } from './csv';

it('writes what it reads', () => {
  const rows = [
    ['name', 'note'],
    ['Ada, Countess', 'said "hello"\non two lines'],
  ];
  expect(parseCsv(toCsv(rows[0] ?? [], rows.slice(1)))).toEqual(rows);
});

it('disarms formulas and leaves numbers alone', () => {
  expect(csvCell('=1+1')).toBe("'=1+1");
  expect(csvCell('@cmd')).toBe("'@cmd");
  expect(csvCell(-5)).toBe('-5');
});

it.each(['=', '+', '-', '@', '\t', '\r', '\n'])('disarms what begins with %j, as the server does', (head) => {
  const disarmed = `'${head}1+1`;
  expect(parseCsv(toCsv(['note'], [[`${head}1+1`]]))[1]).toEqual([disarmed]);
});

it.each(['\n', '\r', '\r\n', '"', ',', ';', '\t'])('keeps a cell with %j in it whole', (inside) => {
  const cell = `before${inside}after`;
  expect(csvCell(cell)).toMatch(/^".*"$/s);
  expect(parseCsv(toCsv(['a', 'b'], [[cell, 'next']]))[1]).toEqual([cell, 'next']);
});

it('takes semicolons, a byte order mark and empty lines', () => {
  expect(parseCsv('\uFEFFa;b\r\n\r\n1;2\r\n')).toEqual([
    ['a', 'b'],
    ['1', '2'],
  ]);
});
