// @vitest-environment happy-dom
// The dialog of the import: nothing is sent but a dry run until somebody has seen it, and the import sends the same text.
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { I18nProvider, type Loaded } from '@tidepool/shared/i18n/i18n';
import { act } from 'react';
import { createRoot, type Root } from 'react-dom/client';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { dictionaries } from '../messages';
import { en as general } from '../messages/en';
import { zh } from '../messages/zh';
import type { ImportLine, ImportResult } from '../records';
import { ImportUsers } from './import';
import { en } from './import-texts';

const { sent, answers } = vi.hoisted(() => ({
  sent: [] as { csv: string; dry_run: boolean }[],
  /** What the next requests are answered with; an error is thrown, as when no answer comes. */
  answers: [] as (object | Error)[],
}));

vi.mock('../api', () => ({
  api: {
    POST: (path: string, { body }: { body: { csv: string; dry_run: boolean } }) => {
      expect(path).toBe('/users/import');
      sent.push(body);
      const next = answers.shift();
      if (next === undefined) throw new Error('a request that was not expected');
      if (next instanceof Error) return Promise.reject(next);
      const refused = 'code' in next;
      const response = new Response(null, { status: refused ? 400 : 200 });
      return Promise.resolve(
        refused ? { error: next, response } : { data: { code: '0000', msg: '', data: next }, response },
      );
    },
  },
}));

const NOTHING = { changes: [], profession: null, password_ignored: false, refusal: null };
const LINES: ImportLine[] = [
  {
    ...NOTHING,
    line: 2,
    email: 'ada@example.test',
    action: 'create',
    changes: [
      { field: 'name', old: null, new: 'Ada' },
      { field: 'quota_daily', old: null, new: '5000' },
      { field: 'password', old: null, new: null },
    ],
    profession: { name: 'Sales', instance_id: 'a1' },
  },
  {
    ...NOTHING,
    line: 3,
    email: 'bob@example.test',
    action: 'update',
    changes: [
      { field: 'department', old: '', new: 'Ops' },
      { field: 'quota_daily', old: '0', new: '7' },
    ],
    password_ignored: true,
  },
  {
    ...NOTHING,
    line: 4,
    email: 'cy@example.test',
    action: 'unchanged',
    profession: { name: 'Law', instance_id: null },
  },
  {
    ...NOTHING,
    line: 5,
    email: 'nobody',
    action: 'refuse',
    refusal: { reason: 'email', message: 'email: must be an e-mail address' },
  },
];

const result = (dryRun: boolean, more: Partial<ImportResult> = {}): ImportResult => ({
  dry_run: dryRun,
  summary: { create: 1, update: 1, unchanged: 1, refuse: 1, assign: 1 },
  ignored_columns: [],
  lines: LINES,
  ...more,
});

let root: Root;

beforeEach(() => {
  vi.stubGlobal('IS_REACT_ACT_ENVIRONMENT', true);
  sent.length = 0;
  answers.length = 0;
  document.body.innerHTML = '<main></main>';
  root = createRoot(document.body.firstElementChild ?? document.body);
});

afterEach(() => {
  act(() => root.unmount());
  vi.unstubAllGlobals();
});

/** Lets answers arrive and be drawn. */
async function settle() {
  for (let turn = 0; turn < 5; turn += 1) await act(() => new Promise((done) => setTimeout(done)));
}

async function open(initial: Loaded = { language: 'en', messages: general }) {
  act(() =>
    root.render(
      <QueryClientProvider client={new QueryClient()}>
        <I18nProvider dictionaries={dictionaries} initial={initial}>
          <ImportUsers onClose={() => undefined} />
        </I18nProvider>
      </QueryClientProvider>,
    ),
  );
  await settle();
}

const text = () => document.body.textContent;
const button = (label: string) => {
  const found = [...document.querySelectorAll('button')].find((one) => one.textContent === label);
  if (found === undefined) throw new Error(`there is no button ${label}`);
  return found;
};
const press = async (label: string) => {
  act(() => button(label).click());
  await settle();
};

async function paste(value: string) {
  const area = document.querySelector('textarea');
  if (area === null) throw new Error('there is no text');
  const property = Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, 'value');
  act(() => {
    property?.set?.call(area, value);
    area.dispatchEvent(new Event('input', { bubbles: true }));
  });
  await settle();
}

const rows = () =>
  [...document.querySelectorAll('tbody tr')].map((row) =>
    [...row.querySelectorAll('td')].map((cell) =>
      [...cell.childNodes].map((node) => node.textContent).join('|'),
    ),
  );

it('shows what each line would do, then what it did', async () => {
  await open();
  expect(button('Preview').disabled).toBe(true);
  await paste('email\nada@example.test');
  answers.push(result(true, { ignored_columns: ['Room'] }));
  await press('Preview');
  expect(sent).toEqual([{ csv: 'email\nada@example.test', dry_run: true }]);
  expect(text()).toContain('1 new, 1 changed, 1 unchanged, 1 refused. 1 would get an assistant.');
  expect(text()).toContain('Columns that are not used: Room.');
  expect(rows()).toEqual([
    ['2', 'ada@example.test', 'New|Ada · 5,000 tokens per day · Password|Gets a1 (Sales)'],
    [
      '3',
      'bob@example.test',
      'Changed|Department: empty → Ops|Daily quota: No limit → 7 tokens per day|The password is not used, because the account exists.',
    ],
    ['4', 'cy@example.test', 'Unchanged|Has an assistant of Law already'],
    ['5', 'nobody', 'Refused|This is not an e-mail address.'],
  ]);
  answers.push(result(false));
  await press('Import (2)');
  expect(sent[1]).toEqual({ csv: 'email\nada@example.test', dry_run: false });
  expect(text()).toContain(en['import.resultLead']);
  expect(text()).toContain('1 refused. 1 got an assistant.');
  expect(text()).toContain(en['import.correct']);
  expect(rows()).toHaveLength(4);
});

it('moves the focus to the summary, so that a second Enter does not start the import', async () => {
  await open();
  await paste('email\nada@example.test');
  answers.push(result(true));
  await press('Preview');
  expect(document.activeElement?.role).toBe('status');
  expect(document.activeElement?.textContent).toContain('1 new, 1 changed');
});

it('shows the lines of one kind', async () => {
  await open();
  await paste('email\nada@example.test');
  answers.push(result(true));
  await press('Preview');
  const select = document.querySelector('select');
  if (select === null) throw new Error('there is no choice');
  act(() => {
    select.value = 'refuse';
    select.dispatchEvent(new Event('change', { bubbles: true }));
  });
  expect(rows().map(([line]) => line)).toEqual(['5']);
});

it('imports nothing when no line changes anything', async () => {
  await open();
  await paste('email\ncy@example.test');
  const none = { create: 0, update: 0, unchanged: 1, refuse: 0, assign: 0 };
  answers.push(result(true, { summary: none, lines: LINES.slice(2, 3) }));
  await press('Preview');
  expect(button('Import (0)').disabled).toBe(true);
});

it('says why a file was refused, and takes another text', async () => {
  await open();
  await paste('name\nAda');
  answers.push({ code: '4000', msg: 'csv: the first line must name the columns', data: null });
  await press('Preview');
  expect(document.querySelector('[role=alert]')?.textContent).toBe('the first line must name the columns');
  await paste('email\nada@example.test');
  expect(document.querySelector('[role=alert]')).toBeNull();
});

it('leads back to the text, and previews it again before it imports', async () => {
  await open();
  await paste('email\nada@example.test');
  answers.push(result(true));
  await press('Preview');
  await press('Back');
  expect(document.querySelector('textarea')?.value).toBe('email\nada@example.test');
  expect(document.querySelector('table')).toBeNull();
});

it('asks for another preview when no answer came to the import', async () => {
  await open();
  await paste('email\nada@example.test');
  answers.push(result(true), new TypeError('Failed to fetch'));
  await press('Preview');
  await press('Import (2)');
  expect(text()).toContain(en['import.unknown']);
  answers.push(result(true, { summary: { create: 0, update: 1, unchanged: 2, refuse: 1, assign: 0 } }));
  await press('Preview again');
  expect(sent.map((body) => body.dry_run)).toEqual([true, false, true]);
  expect(text()).not.toContain(en['import.unknown']);
  expect(button('Import (1)').disabled).toBe(false);
});

it('previews a file as soon as it is chosen', async () => {
  await open();
  const input = document.querySelector<HTMLInputElement>('input[type=file]');
  if (input === null) throw new Error('there is no field for a file');
  const choose = async (file: File) => {
    Object.defineProperty(input, 'files', { value: [file], configurable: true });
    act(() => void input.dispatchEvent(new Event('change', { bubbles: true })));
    await settle();
  };
  await choose(new File([Uint8Array.from([0xe9, 0x0a])], 'latin.csv'));
  expect(text()).toContain(en['import.notText']);
  expect(sent).toEqual([]);
  answers.push(result(true));
  await choose(new File(['email\nada@example.test'], 'people.csv'));
  expect(sent).toEqual([{ csv: 'email\nada@example.test', dry_run: true }]);
  expect(rows()).toHaveLength(4);
});

it('speaks Chinese', async () => {
  await open({ language: 'zh', messages: zh });
  await paste('email\nada@example.test');
  answers.push(result(true));
  await press('预览');
  expect(text()).toContain('新增 1，更改 1，不变 1，拒绝 1。');
  expect(rows()[3]).toEqual(['5', 'nobody', '拒绝|不是邮箱地址。']);
});

it('shows the words of the server for a reason that it does not know', async () => {
  await open();
  await paste('email\nada@example.test');
  const refusal = { reason: 'newer' as 'email', message: 'because of something new' };
  answers.push(result(true, { lines: [{ ...NOTHING, line: 2, email: 'x', action: 'refuse', refusal }] }));
  await press('Preview');
  expect(rows()[0]?.[2]).toBe('Refused|because of something new');
});
