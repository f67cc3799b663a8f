// Reads CSV as spreadsheets write it: cells in quotes may hold separators, line breaks and doubled quotes. Spaces around a
// cell's text are dropped. The separator is found as the server's import finds it.

export interface CsvLine {
  /** Where it begins in the text, counted from 1. */
  line: number;
  cells: readonly string[];
}

/** The lines that have a cell with text; `unclosed` is the line of a quote that never ends. */
export interface CsvText {
  lines: readonly CsvLine[];
  unclosed?: number;
}

/** Of as many the last counts, so that the comma stands there. */
const SEPARATORS = ['\t', ';', ','];

/** The separator that the first line has most of, outside of quotes. */
function separatorOf(text: string): string {
  const header = text.replace(/^[\r\n]+/, '').split(/[\r\n]/, 1)[0] ?? '';
  const outside = header.replace(/"[^"]*"/g, '');
  const count = (separator: string) => outside.split(separator).length - 1;
  return SEPARATORS.reduce((best, one) => (count(one) >= count(best) ? one : best));
}

export function readCsv(source: string): CsvText {
  const text = source.replace(/^\uFEFF/, '').replace(/\r\n?/g, '\n');
  const separator = separatorOf(text);
  const lines: CsvLine[] = [];
  let cells: string[] = [];
  let cell = '';
  /** Where the open quote began; 0 outside of quotes. */
  let quote = 0;
  let line = 1;
  let begin = 1;
  const endCell = () => {
    cells.push(cell.trim());
    cell = '';
  };
  const endLine = () => {
    endCell();
    if (cells.some((one) => one !== '')) lines.push({ line: begin, cells });
    cells = [];
  };
  for (let at = 0; at < text.length; at += 1) {
    const char = text.charAt(at);
    if (char === '\n') line += 1;
    if (quote > 0) {
      if (char !== '"') cell += char;
      else if (text.charAt(at + 1) === '"') {
        cell += '"';
        at += 1;
      } else quote = 0;
    } else if (char === '"' && cell.trim() === '') {
      cell = '';
      quote = line;
    } else if (char === separator) endCell();
    else if (char === '\n') {
      endLine();
      begin = line;
    } else cell += char;
  }
  if (quote > 0) return { lines, unclosed: quote };
  endLine();
  return { lines };
}
