// CSV keeps every cell whole, and carries no formulas.
import { expect, it } from 'vitest';
import { csvCell, toCsv } from './csv';

it('writes a header and rows, with quotes where they are needed', () => {
  const text = toCsv(['name', 'note'], [['Ada, Countess', 'said "hello"\non two lines']]);
  expect(text).toBe('name,note\r\n"Ada, Countess","said ""hello""\non two lines"\r\n');
});

it('disarms formulas and leaves numbers alone', () => {
  expect(csvCell('=1+1')).toBe("'=1+1");
  expect(csvCell('@cmd')).toBe("'@cmd");
  expect(csvCell(-5)).toBe('-5');
});

it.each(['=', '+', '-', '@', '\t', '\r', '\n'])('disarms what begins with %j, as the server does', (head) => {
  expect(csvCell(`${head}1+1`).replace(/^"|"$/g, '')).toBe(`'${head}1+1`);
});

it.each(['\n', '\r', '\r\n', '"', ',', ';', '\t'])('keeps a cell with %j in it whole', (inside) => {
  const cell = `before${inside}after`;
  expect(csvCell(cell)).toBe(`"${cell.replaceAll('"', '""')}"`);
});
