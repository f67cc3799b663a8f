// Reads a CSV of employees: which line becomes whom, and what is wrong with the others. Nothing is sent here.
import { parseCsv } from '@tidepool/shared/table/csv';
import { readNumber } from '@tidepool/shared/ui/number';
import { QUOTA } from './quota';

export interface ImportUser {
  email: string;
  name: string;
  department: string;
  /** Not given, there is no limit. */
  quota_daily?: number;
  password?: string;
}

export type Problem = 'email' | 'twice' | 'exists' | 'quota' | 'password';

export interface ImportRow {
  line: number;
  user: ImportUser;
  problem: Problem | null;
}

const COLUMNS = ['email', 'name', 'department', 'quota_daily', 'password'] as const;
const EMAIL = /^[^\s@]+@[^\s@]+\.[^\s@]+$/;

/** No limit is either a line without this column or a 0 in it, as in the API; an empty cell is refused. */
const QUOTA_CELL = { ...QUOTA, min: 0 };

/** A first line that names its columns decides their order; without one it is the order of COLUMNS. */
export function readImport(text: string, existing: ReadonlySet<string>, locale: string): ImportRow[] {
  const rows = parseCsv(text);
  const first = (rows[0] ?? []).map((cell) => cell.trim().toLowerCase());
  const named = first.includes('email');
  const order = named ? first : [...COLUMNS];
  const seen = new Set<string>();
  return (named ? rows.slice(1) : rows).map((cells, index) => {
    const cell = (name: (typeof COLUMNS)[number]) => (cells[order.indexOf(name)] ?? '').trim();
    const email = cell('email').toLowerCase();
    const password = cell('password');
    const quota = cells[order.indexOf('quota_daily')];
    const read = quota === undefined ? { value: undefined } : readNumber(quota, QUOTA_CELL, locale);
    const problem: Problem | null = !EMAIL.test(email)
      ? 'email'
      : seen.has(email)
        ? 'twice'
        : existing.has(email)
          ? 'exists'
          : 'problem' in read
            ? 'quota'
            : password !== '' && Array.from(password).length < 8
              ? 'password'
              : null;
    seen.add(email);
    return {
      line: index + (named ? 2 : 1),
      user: {
        email,
        name: cell('name'),
        department: cell('department'),
        quota_daily: 'value' in read ? read.value : undefined,
        password: password || undefined,
      },
      problem,
    };
  });
}
