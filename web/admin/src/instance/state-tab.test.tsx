// @vitest-environment happy-dom
// The tab that compares an instance with our records: what it shows, what it offers to whom, and what it sends.
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { I18nProvider, type Loaded } from '@tidepool/shared/i18n/i18n';
import { act } from 'react';
import { createRoot, type Root } from 'react-dom/client';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { dictionaries } from '../messages';
import { en as general } from '../messages/en';
import { zh } from '../messages/zh';
import type { InstanceDetail, InstanceState } from '../records';
import { en as own } from './compare-texts';
import { en as place } from './place-texts';
import { StateTab } from './state-tab';

const en = { ...general, ...own, ...place };

const { sent, stored, asked } = vi.hoisted(() => ({
  /** What was sent: the method, the path and the body. */
  sent: [] as unknown[],
  stored: new Map<string, unknown>(),
  asked: [] as string[],
}));

vi.mock('../api', () => {
  const answer = (data: unknown) =>
    Promise.resolve({ data: { code: 0, msg: '', data }, response: new Response() });
  const change =
    (method: string) =>
    (path: string, { body }: { body?: unknown }) => {
      sent.push([method, path, body]);
      return answer({ task_id: 't1' });
    };
  const GET = (path: string) => {
    asked.push(path);
    return answer(stored.get(path));
  };
  return { api: { GET, POST: change('POST'), PUT: change('PUT'), DELETE: change('DELETE') } };
});

const INSTANCE = {
  id: 'a',
  name: 'Pearl',
  is_main: false,
  home: '/srv/a',
  held_until: null,
  assigned_email: 'ada@example.test',
} as InstanceDetail;

const STATE: InstanceState = {
  generation: 8,
  applied: 7,
  hold: null,
  compared_at: '2026-06-10T10:00:00Z',
  unreachable: null,
  fields: [
    { name: 'service', desired: 'runs', observed: 'runs', effect: 'nothing' },
    { name: 'agents.model', desired: 'large', observed: 'small', effect: 'hot' },
  ],
  foreign: [],
  untouched: false,
  differs: 'agents.model: small → large',
  differs_since: '2026-06-10T09:00:00Z',
  steps: ['write_config', 'reload'],
  next: 'reconcile',
  ask: null,
  failures: 0,
  error: '',
};
const COLD: Partial<InstanceState> = {
  fields: [{ name: 'gateway.auth.token', desired: '***', observed: '***', effect: 'restart' }],
  steps: ['write_config', 'restart'],
  next: 'ask',
  ask: 'it takes a restart: it is brought with the next one, or by a person',
};
const HELD: Partial<InstanceState> = {
  hold: { until: '2026-06-10T12:00:00Z', reason: 'We look for a leak', by: 'ada@example.test' },
  next: 'wait',
};

let root: Root;

beforeEach(() => {
  vi.stubGlobal('IS_REACT_ACT_ENVIRONMENT', true);
  sent.length = 0;
  asked.length = 0;
  stored.clear();
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

interface Drawing {
  instance?: Partial<InstanceDetail>;
  permissions?: string[];
  initial?: Loaded;
}

async function draw(state: Partial<InstanceState>, drawing: Drawing = {}) {
  const {
    instance,
    permissions = ['instances.manage'],
    initial = { language: 'en', messages: general },
  } = drawing;
  stored.set('/instances/{id}/state', { ...STATE, ...state });
  const client = new QueryClient();
  client.setQueryData(['me'], { role: 'operator', permissions });
  act(() =>
    root.render(
      <QueryClientProvider client={client}>
        <I18nProvider dictionaries={dictionaries} initial={initial}>
          <StateTab instance={{ ...INSTANCE, ...instance }} />
        </I18nProvider>
      </QueryClientProvider>,
    ),
  );
  await settle();
}

const text = () => document.body.textContent;
const buttons = () => [...document.querySelectorAll('button')].map((one) => one.textContent);
const rows = () =>
  [...document.querySelectorAll(`ul[aria-label="${en['compare.title']}"] > li`)].map(
    (one) => one.textContent,
  );

async function press(label: string) {
  const button = [...document.querySelectorAll('button')].findLast((one) => one.textContent === label);
  if (button === undefined) throw new Error(`there is no button ${label}`);
  act(() => button.click());
  await settle();
}

async function submit() {
  const form = [...document.querySelectorAll('form')].at(-1);
  act(() => void form?.dispatchEvent(new Event('submit', { bubbles: true, cancelable: true })));
  await settle();
}

/** Types or chooses as React notices it. */
function enter(selector: string, value: string) {
  const input = document.querySelector(selector);
  if (input === null) throw new Error(`there is no ${selector}`);
  const prototype: unknown = Object.getPrototypeOf(input);
  act(() => {
    Object.getOwnPropertyDescriptor(prototype, 'value')?.set?.call(input, value);
    input.dispatchEvent(new Event('input', { bubbles: true }));
    input.dispatchEvent(new Event('change', { bubbles: true }));
  });
}

it('shows both sides, what differs, since when, and what will be done', async () => {
  await draw({});
  expect(rows()).toEqual([
    'ServiceOur records: runsOn the server: runs',
    'agents.modelOur records: largeOn the server: smallDiffers. The running assistant takes it over by itself.',
  ]);
  expect(text()).toContain('One difference');
  const times = [...document.querySelectorAll('time')].map((one) => one.dateTime);
  expect(times).toEqual(['2026-06-10T09:00:00.000Z', '2026-06-10T10:00:00.000Z']);
  expect(text()).toContain('With the next pass, within five minutes: write the configuration, let the');
  expect(text()).toContain('Change 7 of our records is on the server; change 8 is not yet.');
  expect(text()).toContain('changed by hand');
});

it('says that nothing differs, and offers nothing but a hold', async () => {
  await draw({ fields: STATE.fields.slice(0, 1), steps: [], next: 'nothing', applied: 8, untouched: true });
  expect(text()).toContain('Everything is as our records want it.');
  expect(buttons()).toEqual(['Hold…']);
  // What was recorded earlier differs no more.
  expect(document.querySelectorAll('time')).toHaveLength(1);
});

it('brings what the running assistant takes over at once', async () => {
  await draw({});
  expect(buttons()).toEqual(['Bring it now', 'Hold…']);
  await press('Bring it now');
  expect(sent).toEqual([['POST', '/instances/{id}/reconcile', { restart: false }]]);
  // What came of it is read again.
  expect(asked.filter((path) => path.endsWith('/state'))).toHaveLength(2);
});

it('asks before it restarts', async () => {
  await draw(COLD);
  expect(text()).toContain(en['ask.restart']);
  expect(text()).toContain(en['compare.masked']);
  expect(buttons()).toEqual(['Bring it now, with a restart', 'Hold…']);
  await press('Bring it now, with a restart');
  expect(sent).toEqual([]);
  expect(text()).toContain('The assistant is restarted');
  expect(text()).toContain('What is done: write the configuration, restart the assistant.');
  expect(text()).toContain('ada@example.test is interrupted meanwhile.');
  await submit();
  expect(sent).toEqual([['POST', '/instances/{id}/reconcile', { restart: true }]]);
});

it('shows a hold with its reason, and ends it', async () => {
  await draw(HELD, { instance: { held_until: '2026-06-10T12:00:00Z' } });
  expect(text()).toContain('Asked for by ada@example.test: We look for a leak');
  expect(buttons()).toEqual(['Change the hold…', 'End the hold', 'Bring it now']);
  await press('End the hold');
  expect(sent).toEqual([['DELETE', '/instances/{id}/hold', undefined]]);
});

it('holds for a reason, until a time', async () => {
  await draw({});
  await press('Hold…');
  await submit();
  expect(text()).toContain(en['hold.reasonNeeded']);
  enter('textarea[name=reason]', ' We look for a leak ');
  enter('form select', 'other');
  await submit();
  expect(text()).toContain(en['hold.atRange']);
  expect(sent).toEqual([]);
  enter('form select', 'hour');
  const before = Date.now();
  await submit();
  expect(sent).toEqual([
    ['PUT', '/instances/{id}/hold', { until: expect.any(String) as string, reason: 'We look for a leak' }],
  ]);
  const [, , body] = sent[0] as [string, string, { until: string }];
  expect(Date.parse(body.until) - before).toBeGreaterThanOrEqual(3_600_000);
  expect(Date.parse(body.until) - before).toBeLessThan(3_660_000);
  expect(document.querySelector('form')).toBeNull();
});

it('shows what was recorded where the server cannot be asked', async () => {
  await draw({ unreachable: 'no route to host', fields: [], steps: [], next: 'unknown', untouched: null });
  expect(text()).toContain('The server could not be asked: no route to host');
  expect(text()).toContain('agents.model: small → large');
  expect(document.querySelectorAll('time')).toHaveLength(2);
  expect(buttons()).toEqual(['Hold…']);
});

it('says what failed', async () => {
  await draw({ failures: 3, error: 'the disk is full' });
  expect(document.querySelector('[role=alert]')?.textContent).toBe(
    'It failed 3 times in a row. The last error:the disk is full',
  );
});

it('folds many settings that are not ours', async () => {
  const setting = (n: number) => ({ path: `plugins.p${n}`, value: String(n) });
  await draw({ foreign: [setting(1), setting(2)] });
  expect(text()).toContain('plugins.p2');
  expect(document.querySelector('details')).toBeNull();
  act(() => root.render(null));
  await draw({ foreign: Array.from({ length: 40 }, (_, n) => setting(n)) });
  expect(document.querySelector('details')?.open).toBe(false);
  expect(document.querySelector('summary')?.textContent).toBe('Show all 40');
});

it('offers nothing to those who may only read', async () => {
  await draw({ ...COLD, ...HELD }, { permissions: ['fleet.read'] });
  expect(buttons()).toEqual([]);
  expect(text()).toContain('We look for a leak');
});

it('does not ask about an instance that is on no server, which can be held all the same', async () => {
  await draw({}, { instance: { home: '', held_until: '2026-06-10T12:00:00Z' } });
  expect(asked).toEqual([]);
  expect(text()).toContain(en['place.notThere']);
  expect(buttons()).toEqual(['Change the hold…', 'End the hold']);
});

it('compares nothing of an instance that answers at an address of its own', async () => {
  await draw({}, { instance: { home: '', runner: 'address', isolation: 'adopted' } });
  expect(asked).toEqual([]);
  expect(text()).toContain(en['place.elsewhereText']);
  expect(buttons()).toEqual(['Hold…']);
});

it('says all of it in Chinese', async () => {
  await draw({ ...COLD, ...HELD }, { initial: { language: 'zh', messages: zh } });
  // Names, values and what people wrote have Latin letters; the sentences around them have none.
  const ours = text().replaceAll(/gateway\.auth\.token|We look for a leak|ada@example\.test/g, '');
  expect(ours).not.toMatch(/[A-Za-z]{4,}/);
});
