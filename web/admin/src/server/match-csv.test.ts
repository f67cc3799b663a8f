// A table gives e-mails to the gateways that it names, by whichever column it has, and says which lines it could not use.
import { expect, it } from 'vitest';
import { matchCsv, type Adoptee } from './match-csv';

const ADA: Adoptee = {
  key: 'unit:openclaw-ada.service',
  unit: 'openclaw-ada.service',
  user: 'ada',
  home: '/home/ada',
  id: 'ada',
  name: 'Ada’s assistant',
};
const BOB: Adoptee = {
  key: 'process:/home/bob',
  unit: '',
  user: 'bob',
  home: '/home/bob',
  id: 'assistant-2',
  name: 'assistant-2',
};
const ALL = [ADA, BOB];

const emails = (text: string, all = ALL) => {
  const matched = matchCsv(text, all);
  return 'problem' in matched ? matched : Object.fromEntries(matched.emails);
};
const left = (text: string) => {
  const matched = matchCsv(text, ALL);
  return 'problem' in matched ? matched : matched.left;
};

it.each([
  ['key', 'unit:openclaw-ada.service'],
  ['name', 'openclaw-ada.service'],
  ['name', 'openclaw-ada'],
  ['name', 'Ada’s assistant'],
  ['user', 'ada'],
  ['home', '/home/ada'],
  ['home', `${ADA.home}/`],
  ['id', 'ada'],
  ['User', 'ada'],
])('matches by %s: %s', (column, value) => {
  expect(emails(`${column},email\n${value},ada@b.test`)).toEqual({ [ADA.key]: 'ada@b.test' });
  expect(emails(`E-Mail;${column}\nada@b.test;${value}`)).toEqual({ [ADA.key]: 'ada@b.test' });
});

it('takes the most exact column that a line has a text for', () => {
  const text = 'name,user,email\nopenclaw-ada.service,bob,x@b.test\nopenclaw-ada,,ada@b.test';
  expect(emails(text)).toEqual({ [BOB.key]: 'x@b.test', [ADA.key]: 'ada@b.test' });
});

it('gives all gateways of a user the same e-mail', () => {
  const second = { ...ADA, key: 'unit:second.service', id: 'second' };
  expect(emails('user,email\nada,ada@b.test', [ADA, second])).toEqual({
    [ADA.key]: 'ada@b.test',
    [second.key]: 'ada@b.test',
  });
});

it('says which lines it could not use, and why', () => {
  const text =
    'user,email\nada,ada@b.test\n"carol, the third",c@b.test\nbob,none\nada,other@b.test\n,d@b.test\nada,ada@b.test';
  expect(left(text)).toEqual([
    { line: 3, name: 'carol, the third', why: 'unmatched' },
    { line: 4, name: 'bob', why: 'noAddress' },
    { line: 5, name: 'ada', why: 'taken' },
    { line: 6, name: '', why: 'unmatched' },
  ]);
});

it('does not take an empty text for the unit or the home of a gateway that has none', () => {
  const bare = { ...BOB, home: '', id: '', name: '' };
  expect(emails('name,email\n.service,b@b.test', [bare])).toEqual({});
  expect(emails('home,email\n/,b@b.test', [bare])).toEqual({});
});

it.each([
  ['user,name\nada,Ada', { problem: 'noEmailColumn', line: 1 }],
  ['department,email\nResearch,ada@b.test', { problem: 'noNameColumn', line: 1 }],
  ['\nuser,email\n\n', { problem: 'noLines', line: 2 }],
  ['user,email\nada,"ada@b.test', { problem: 'unclosed', line: 2 }],
  ['ada@b.test', { problem: 'noEmailColumn', line: 1 }],
])('says what is wrong with a table: %j', (text, problem) => {
  expect(matchCsv(text, ALL)).toEqual(problem);
});
