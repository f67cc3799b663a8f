// An import says what it would do before it does anything.
import { expect, it } from 'vitest';
import { readImport } from './import-rows';

it('reads columns by their names, in any order', () => {
  const [row] = readImport('department,email,name\nSales,Ada@Example.test,Ada', new Set(), 'en');
  expect(row).toMatchObject({
    line: 2,
    problem: null,
    user: { email: 'ada@example.test', name: 'Ada', department: 'Sales' },
  });
});

it('reads lines without a header in the known order', () => {
  const [row] = readImport('a@b.test,Ann,Ops,5000', new Set(), 'en');
  expect(row).toMatchObject({ line: 1, user: { quota_daily: 5000, password: undefined } });
});

it.each([
  ['nobody', 'email'],
  ['old@b.test', 'exists'],
  ['a@b.test,,,-1', 'quota'],
  ['a@b.test,,,100k', 'quota'],
  ['a@b.test,,,1.000', 'quota'],
  ['a@b.test,,,1e3', 'quota'],
  ['a@b.test,,,', 'quota'],
  ['a@b.test,,,0,short', 'password'],
])('says what is wrong with %j', (line, problem) => {
  expect(readImport(line, new Set(['old@b.test']), 'en')[0]?.problem).toBe(problem);
});

it('takes an e-mail once', () => {
  expect(readImport('a@b.test\nA@b.test', new Set(), 'en').map((row) => row.problem)).toEqual([
    null,
    'twice',
  ]);
});

it.each([
  ['a@b.test', undefined],
  ['a@b.test,,,0', 0],
  ['a@b.test,,,"1,000"', 1000],
])('reads the quota of %j', (line, quota) => {
  const [row] = readImport(line, new Set(), 'en');
  expect(row).toMatchObject({ problem: null, user: { quota_daily: quota } });
});
