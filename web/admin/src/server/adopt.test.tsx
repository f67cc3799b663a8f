// @vitest-environment happy-dom
// What a server has already: what the card says of it and asks the server, and what an adoption sends and leaves out.
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import type { Permission } from '@tidepool/shared/api/registry.gen';
import { I18nProvider, type Loaded } from '@tidepool/shared/i18n/i18n';
import { act, type ReactNode } from 'react';
import { createRoot, type Root } from 'react-dom/client';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { dictionaries } from '../messages';
import { en } from '../messages/en';
import { zh } from '../messages/zh';
import type { Adoption, AdoptionPreview, DiscoveredGateway } from '../records';
import { AdoptDialog } from './adopt';
import { Discovered } from './discovered';

const { sent, stored } = vi.hoisted(() => ({
  /** The path and the query or body of each request. */
  sent: [] as [string, unknown][],
  /** What is answered, by path. */
  stored: new Map<string, unknown>(),
}));

vi.mock('../api', () => {
  const ask = (path: string, request: { params?: { query?: unknown }; body?: unknown } = {}) => {
    sent.push([path, request.body ?? request.params?.query]);
    return Promise.resolve({ data: { code: 0, msg: '', data: stored.get(path) }, response: new Response() });
  };
  return { api: { GET: ask, POST: ask } };
});

const gateway = (user: string, change: Partial<DiscoveredGateway> = {}): DiscoveredGateway => ({
  key: `user-unit:${user}:openclaw-gateway.service`,
  runner: 'user_unit',
  name: 'openclaw-gateway.service',
  image: '',
  user,
  home: `/home/${user}`,
  running: true,
  lingers: true,
  port: 18_789,
  open_to_others: false,
  version: '2026.9.6',
  config: 'ok',
  model: null,
  channels: [],
  has_token: true,
  last_session_at: null,
  instance_id: null,
  email: null,
  only_observed: false,
  obstacle: null,
  ...change,
});

const ADA = gateway('ada', { email: 'ada@example.test' });
const BOB = gateway('bob', { lingers: false });
const CAROL = gateway('carol', {
  key: 'process:/home/carol',
  runner: 'process',
  name: '',
  only_observed: true,
});
const BROKEN = gateway('dan', { obstacle: 'config_broken', config: 'broken' });
const TOKENLESS = gateway('eve', { obstacle: 'no_token', has_token: false });
const KNOWN = gateway('fay', { instance_id: 'fay' });
const ALL = [ADA, BOB, CAROL, BROKEN, TOKENLESS, KNOWN];
const EVERYTHING: Permission[] = ['instances.adopt', 'instances.assign_unisolated'];

let root: Root;

beforeEach(() => {
  vi.stubGlobal('IS_REACT_ACT_ENVIRONMENT', true);
  sent.length = 0;
  stored.clear();
  stored.set('/servers/{id}/discover', { list: ALL, complete: true });
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

async function draw(
  content: ReactNode,
  permissions = EVERYTHING,
  initial: Loaded = { language: 'en', messages: en },
) {
  const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  client.setQueryData(['me'], { role: 'super_admin', permissions });
  act(() => root.render(null));
  act(() =>
    root.render(
      <QueryClientProvider client={client}>
        <I18nProvider dictionaries={dictionaries} initial={initial}>
          {content}
        </I18nProvider>
      </QueryClientProvider>,
    ),
  );
  await settle();
}

const text = () => document.body.textContent;
const status = () => document.querySelector('[role=status]')?.textContent;
const labelled = (label: string) =>
  [...document.querySelectorAll('label')]
    .filter((one) => one.textContent === label)
    .map((one) => document.getElementById(one.htmlFor) as HTMLInputElement);
const values = (label: string) => labelled(label).map(({ value }) => value);

async function press(label: string) {
  const button = [...document.querySelectorAll('button')].findLast((one) => one.textContent === label);
  if (button === undefined) throw new Error(`there is no button ${label}`);
  act(() => {
    if (button.type === 'submit')
      button.form?.dispatchEvent(new Event('submit', { bubbles: true, cancelable: true }));
    else button.click();
  });
  await settle();
}

function type(label: string, value: string) {
  const [input] = labelled(label);
  if (input === undefined) throw new Error(`there is no field ${label}`);
  const prototype: unknown = Object.getPrototypeOf(input);
  act(() => {
    Object.getOwnPropertyDescriptor(prototype, 'value')?.set?.call(input, value);
    input.dispatchEvent(new Event('input', { bubbles: true }));
  });
}

const look = async (initial?: Loaded) => {
  await draw(<Discovered id="quay" />, EVERYTHING, initial);
  await press(initial ? '查找助手' : 'Look for assistants');
};

it('says how many can be adopted, and of each why not and what to do', async () => {
  await look();
  expect(status()).toBe('3 can be adopted, 2 cannot.Known already: 1.');
  expect(text()).toContain('Correct .openclaw/openclaw.json in its home, then look again.');
  expect(text()).toContain('Set gateway.auth.token there, then look again.');
  // Only what can be adopted can be chosen.
  expect(document.querySelectorAll('li input[type=checkbox]')).toHaveLength(3);
});

it('marks what is only observed, and says which unit ends with its user’s session', async () => {
  await look();
  const row = (user: string) =>
    [...document.querySelectorAll('li')].find((one) => one.textContent.includes(`of ${user}`))?.textContent;
  expect(row('carol')).toContain('observed only');
  expect(row('carol')).toContain('writes nothing there until it is moved into a cell');
  expect(row('bob')).toContain('It ends when bob logs out.');
  expect(row('bob')).toContain('loginctl enable-linger bob');
  expect(row('ada')).not.toContain('logs out');
  expect(row('ada')).not.toContain('observed only');
  expect(row('ada')).toContain('ada@example.test');
});

it('asks for e-mails only where it is said where they stand', async () => {
  await look();
  type('E-mail from a file', ' .config/owner ');
  await press('Look again');
  type('E-mail from a field of the configuration', 'env.vars.OWNER');
  await press('Look again');
  await press('Look again');
  expect(sent).toEqual(
    [
      {},
      { email_file: '.config/owner' },
      { email_file: '.config/owner', email_field: 'env.vars.OWNER' },
      { email_file: '.config/owner', email_field: 'env.vars.OWNER' },
    ].map((query) => ['/servers/{id}/discover', query]),
  );
});

const open = (permissions = EVERYTHING) =>
  draw(
    <AdoptDialog
      server="quay"
      gateways={[ADA, BOB, CAROL]}
      left={[BROKEN, TOKENLESS]}
      onClose={() => undefined}
    />,
    permissions,
  );

const preview = (user: string, change: Partial<AdoptionPreview> = {}): AdoptionPreview => ({
  key: user,
  instance_id: user,
  changes: [],
  needs_restart: false,
  only_observed: false,
  refusal: null,
  ...change,
});
const adoption = (user: string, refusal: string | null = null): Adoption => ({
  key: user,
  instance_id: user,
  task_id: null,
  refusal,
});

it('adopts what can be adopted, and names what is left out with the reasons', async () => {
  stored.set('/servers/{id}/adopt/preview', {
    list: [
      preview('ada'),
      preview('bob', { refusal: 'it is gone' }),
      preview('carol', { only_observed: true }),
    ],
  });
  stored.set('/servers/{id}/adopt', {
    list: [adoption('ada'), adoption('bob', 'it is gone'), adoption('carol')],
  });
  await open();
  expect(values('Id')).toEqual(['ada', 'bob', 'carol']);
  expect(values('Employee’s e-mail')).toEqual(['ada@example.test', '', '']);
  await press('Preview');
  expect(text()).toContain('It is only observed: nothing starts it again');
  expect(text()).toContain('Left out: Its gateway has no token');
  await press('Adopt (2)');
  expect(status()).toBe('Adopted 2, left out 3.');
  for (const reason of ['it is gone', 'Its configuration cannot be parsed.', 'Its gateway has no token'])
    expect(text()).toContain(`Left out: ${reason}`);
  const [, body] = sent.at(-1) ?? [];
  expect((body as { list: object[] }).list).toMatchObject([
    { key: ADA.key, id: 'ada', email: 'ada@example.test', keeps_llm: true, restart: false },
    { key: BOB.key, email: null },
    { key: CAROL.key, email: null },
  ]);
});

it('gives nothing to anybody for those who may not assign it', async () => {
  stored.set('/servers/{id}/adopt/preview', { list: [] });
  await open(['instances.adopt']);
  expect(text()).not.toContain('Map to employees by CSV');
  expect(labelled('Employee’s e-mail')).toEqual([]);
  await press('Preview');
  const [, body] = sent.at(-1) ?? [];
  expect((body as { list: { email: unknown }[] }).list.map(({ email }) => email)).toEqual([null, null, null]);
});

it('fills in e-mails from pasted lines, and says which it could not use', async () => {
  await open();
  type('Or paste lines', 'user,email\nbob,bob@example.test\n"zoe, too",zoe@example.test\ncarol,nobody');
  await press('Fill in the e-mails');
  expect(values('Employee’s e-mail')).toEqual(['ada@example.test', 'bob@example.test', '']);
  const report = [...document.querySelectorAll('[role=status]')].at(-1)?.textContent;
  expect(report).toContain('1 of 3 got an e-mail.');
  expect(report).toContain('Line 3: none of these assistants is “zoe, too”.');
  expect(report).toContain('Line 4: it has no e-mail address for “carol”.');
});

it('fills in e-mails from a file at once', async () => {
  await open();
  const [input] = labelled('CSV file');
  const file = new File(['id;email\r\ncarol;carol@example.test'], 'people.csv');
  Object.defineProperty(input, 'files', { value: [file] });
  act(() => void input?.dispatchEvent(new Event('change', { bubbles: true })));
  await settle();
  expect(values('Employee’s e-mail')).toEqual(['ada@example.test', '', 'carol@example.test']);
});

it('changes nothing with a table that it cannot use', async () => {
  await open();
  type('Or paste lines', 'department,email\nResearch,bob@example.test');
  await press('Fill in the e-mails');
  expect(document.querySelector('[role=alert]')?.textContent).toBe(
    'Line 1: beside email it must name one of the columns key, name, user, home or id.',
  );
  expect(values('Employee’s e-mail')).toEqual(['ada@example.test', '', '']);
});

it('says all of it in Chinese', async () => {
  await look({ language: 'zh', messages: zh });
  expect(status()).toBe('3 个可以接管，2 个不能接管。已登记：1 个。');
  // Names, paths and settings have Latin letters; the sentences around them have none.
  const ours = text().replaceAll(
    /\.openclaw\/openclaw\.json|openclaw-gateway\.service|OpenClaw|tidepool|loginctl enable-linger|gateway\.auth\.token|ada@example\.test|env\.vars\.OWNER|\.config\/owner|\/home\/carol|carol/g,
    '',
  );
  expect(ours).not.toMatch(/[A-Za-z]{4,}/);
});
