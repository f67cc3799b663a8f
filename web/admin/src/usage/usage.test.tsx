// @vitest-environment happy-dom
// What is not known is said to be unknown, and use without a holder, or of one who left, is shown as what it is.
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { I18nProvider } from '@tidepool/shared/i18n/i18n';
import { act, type ReactNode } from 'react';
import { createRoot, type Root } from 'react-dom/client';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { dictionaries } from '../messages';
import { en } from '../messages/en';
import Breakdown from './breakdown';
import { Department } from './department';
import { SpendDays } from './spend-days';

const answers = new Map<string, unknown>();
const asked: unknown[] = [];

vi.mock('../api', () => ({
  api: {
    GET: (path: string, options: { params: { query: unknown } }) => {
      asked.push(options.params.query);
      const body = { code: '0000', msg: 'ok', data: answers.get(path) };
      return Promise.resolve({ data: body, response: new Response() });
    },
  },
  session: { state: () => ({ token: null }) },
}));

let root: Root;

beforeEach(() => {
  vi.stubGlobal('IS_REACT_ACT_ENVIRONMENT', true);
  document.body.innerHTML = '<main></main>';
  root = createRoot(document.body.firstElementChild ?? document.body);
});

afterEach(() => {
  act(() => root.unmount());
  vi.unstubAllGlobals();
});

async function draw(page: ReactNode, seen = 'tbody tr') {
  const queries = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  act(() =>
    root.render(
      <QueryClientProvider client={queries}>
        <I18nProvider dictionaries={dictionaries} initial={{ language: 'en', messages: en }}>
          {page}
        </I18nProvider>
      </QueryClientProvider>,
    ),
  );
  await vi.waitFor(() => expect(document.querySelector(seen)).not.toBeNull());
}

it('says of a day that could not be compared that it is unknown', async () => {
  const day = { summed: 10, created_at: '' };
  answers.set('/spend-days', {
    total: 3,
    list: [
      { ...day, date: '2026-11-15', logged: 10, balance_gap: 0, drift: 0 },
      { ...day, date: '2026-11-14', logged: null, balance_gap: null, drift: null },
      { ...day, date: '2026-11-13', logged: 5, balance_gap: 0, drift: 5 },
    ],
  });
  await draw(<SpendDays />);
  const verdicts = [...document.querySelectorAll('tbody tr')].map((row) => row.lastElementChild?.textContent);
  expect(verdicts[0]).toBe(en['spend.agree']);
  expect(verdicts[1]).toBe(en['spend.unknown']);
  expect(verdicts[2]).toContain('Apart by');
});

it('names the groupings, a former employee and what nobody had', async () => {
  const sums = { calls: 1, tokens: 10, cost_usd: 1.5 };
  answers.set('/llm-stats', {
    total: 2,
    departments_since: null,
    stale: false,
    as_of: '',
    stats: [
      { ...sums, key: 'rosa@example.com', second_key: 'gpt-4o', unassigned: false, former_employee: true },
      { ...sums, key: '', second_key: 'gpt-4o', unassigned: true },
    ],
  });
  await draw(<Breakdown />);
  expect(asked.at(-1)).toMatchObject({ group_by: 'user,model', page: 1 });
  const rows = [...document.querySelectorAll('tbody tr')].map((row) => row.textContent);
  expect(rows[0]).toContain('rosa@example.com');
  expect(rows[0]).toContain(en['usage.former']);
  expect(rows[1]).toContain(en['usage.unassigned']);
});

it('says of a department since when departments are recorded', async () => {
  const used = { cost_usd: 1.5, total_tokens: 10 };
  const research = { department: 'Research', users: 2, today: used, month: used, daily: [] };
  answers.set('/usage/dept/{dept}', { ...research, departments_since: '2026-11-10T09:30:00.000Z' });
  await draw(<Department name="Research" onClose={() => undefined} />, 'dt');
  const [said] = en['usage.departmentsSince'].split('{time}');
  expect(document.body.textContent).toContain(said);
  expect(document.body.textContent).toContain('2026');
  act(() => root.unmount());
  root = createRoot(document.body.firstElementChild ?? document.body);
  answers.set('/usage/dept/{dept}', { ...research, departments_since: null });
  await draw(<Department name="Research" onClose={() => undefined} />, 'dt');
  expect(document.body.textContent).not.toContain(said);
});
