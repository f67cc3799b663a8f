// Reads a CSV of employees: which line becomes whom, and what is wrong with the others. Nothing is sent here.
import { parseCsv } from '@tidepool/shared/table/csv';

export interface ImportUser {
  email: string;
  name: string;
  department: string;
  quota_daily: number;
  password: string | null;
}

export type Problem = 'email' | 'twice' | 'exists' | 'quota' | 'password';

export interface ImportRow {
  line: number;
  user: ImportUser;
  problem: Problem | null;
}

const COLUMNS = ['email', 'name', 'department', 'quota_daily', 'password'] as const;
const EMAIL = /^[^\s@]+@[^\s@]+\.[^\s@]+$/;

/** A first line that names its columns decides their order; without one it is the order of COLUMNS. */
export function readImport(text: string, existing: ReadonlySet<string>): ImportRow[] {
  const rows = parseCsv(text);
  const first = (rows[0] ?? []).map((cell) => cell.trim().toLowerCase());
  const named = first.includes('email');
  const order = named ? first : [...COLUMNS];
  const seen = new Set<string>();
  return (named ? rows.slice(1) : rows).map((cells, index) => {
    const cell = (name: (typeof COLUMNS)[number]) => (cells[order.indexOf(name)] ?? '').trim();
    const email = cell('email').toLowerCase();
    const password = cell('password');
    const quota = cell('quota_daily') === '' ? 0 : Number(cell('quota_daily'));
    const problem: Problem | null = !EMAIL.test(email)
      ? 'email'
      : seen.has(email)
        ? 'twice'
        : existing.has(email)
          ? 'exists'
          : !Number.isInteger(quota) || quota < 0
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
        quota_daily: quota,
        password: password === '' ? null : password,
      },
      problem,
    };
  });
}
