// Which gateway belongs to which employee, as a table says it: one column is `email`, another names the gateway.
import { readCsv } from '@tidepool/shared/table/read-csv';

/** A gateway in the dialog of its adoption, by all that a table may call it. */
export interface Adoptee {
  key: string;
  /** Its unit or container; empty for a process. */
  unit: string;
  user: string;
  home: string;
  /** Those of the new instance, as they stand in the dialog. */
  id: string;
  name: string;
}

/** Why a line gave nobody an e-mail: no gateway is called so, it has no address, or an earlier line gave another one. */
export type LeftWhy = 'unmatched' | 'noAddress' | 'taken';

export interface LeftLine {
  line: number;
  /** What it calls the gateway. */
  name: string;
  why: LeftWhy;
}

export interface Matches {
  /** E-mails by the key of their gateway. */
  emails: ReadonlyMap<string, string>;
  left: readonly LeftLine[];
}

/** Why the whole table cannot be used. */
export type CsvProblem = 'unclosed' | 'noEmailColumn' | 'noNameColumn' | 'noLines';

const trimmed = (path: string) => (path.length > 1 ? path.replace(/\/+$/, '') : path);
const isUnit = (name: string, unit: string) =>
  unit !== '' && (name === unit || `${name}.service` === unit || name === `${unit}.service`);

/** Of several, the first that a line has a text for counts: the more exact ones come first. */
const COLUMNS: readonly (readonly [string, (text: string, one: Adoptee) => boolean])[] = [
  ['key', (text, one) => text === one.key],
  ['id', (text, one) => text === one.id.trim()],
  ['home', (text, one) => one.home !== '' && trimmed(text) === trimmed(one.home)],
  ['user', (text, one) => text === one.user],
  ['name', (text, one) => isUnit(text, one.unit) || text === one.name.trim()],
];

/** Only what is no address at all: the server reads them more closely. */
const ADDRESS = /^[^\s@,;]+@[^\s@,;]+$/;

export function matchCsv(
  text: string,
  all: readonly Adoptee[],
): Matches | { problem: CsvProblem; line: number } {
  const { lines, unclosed } = readCsv(text);
  if (unclosed !== undefined) return { problem: 'unclosed', line: unclosed };
  const [header, ...rest] = lines;
  const titles = header?.cells.map((title) => title.toLowerCase()) ?? [];
  const emailAt = titles.findIndex((title) => title === 'email' || title === 'e-mail');
  const columns = COLUMNS.flatMap(([title, is]) => {
    const at = titles.indexOf(title);
    return at < 0 ? [] : [{ at, is }];
  });
  const line = header?.line ?? 1;
  if (emailAt < 0) return { problem: 'noEmailColumn', line };
  if (columns.length === 0) return { problem: 'noNameColumn', line };
  if (rest.length === 0) return { problem: 'noLines', line };

  const emails = new Map<string, string>();
  const left: LeftLine[] = [];
  for (const { line, cells } of rest) {
    const email = cells[emailAt] ?? '';
    const column = columns.find(({ at }) => (cells[at] ?? '') !== '');
    const name = (column && cells[column.at]) ?? '';
    const found = column ? all.filter((one) => column.is(name, one)) : [];
    const free = found.filter(({ key }) => (emails.get(key) ?? email) === email);
    const why =
      found.length === 0
        ? 'unmatched'
        : !ADDRESS.test(email)
          ? 'noAddress'
          : free.length === 0
            ? 'taken'
            : null;
    if (why !== null) left.push({ line, name, why });
    else for (const { key } of free) emails.set(key, email);
  }
  return { emails, left };
}
