// @vitest-environment happy-dom
// What the console's forms send: a number that cannot be read is refused at its field and nothing is sent, no limit is a
// choice, and a change leaves out everything that was not changed, secrets above all.
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { PERMISSIONS } from '@tidepool/shared/api/registry.gen';
import { I18nProvider, type Loaded } from '@tidepool/shared/i18n/i18n';
import { act, type ReactNode } from 'react';
import { createRoot, type Root } from 'react-dom/client';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { LimitsDialog } from './cell/limits-dialog';
import { Alerts } from './guardian/alerts';
import { CreateInstance } from './instance/create';
import { EditInstance } from './instance/facts-tab';
import { MakeKey } from './keys/keys';
import { ModelTable } from './keys/models';
import { ItemPanel } from './market/panel';
import { dictionaries } from './messages';
import { en } from './messages/en';
import { zh } from './messages/zh';
import { ProfessionForm } from './profession/form';
import type { Admin, InstanceDetail, LimitValues, Profession, Server, User } from './records';
import { ServerForm } from './server/form';
import { SshKeyFact } from './server/ssh-key';
import { AdminForm } from './settings/admin-form';
import { UserForm } from './user/forms';

const { sent, stored } = vi.hoisted(() => ({
  /** The bodies of all requests that change something, as JSON carries them. */
  sent: [] as unknown[],
  /** What GET answers, by path; an empty list otherwise. */
  stored: new Map<string, unknown>(),
}));

vi.mock('./api', () => {
  const answer = (data: unknown) =>
    Promise.resolve({ data: { code: 0, msg: '', data }, response: new Response() });
  const change = (_: string, { body }: { body?: unknown }) => {
    sent.push(JSON.parse(JSON.stringify(body)));
    return answer({ name: '', email: '' });
  };
  const GET = (path: string) => answer(stored.get(path) ?? { list: [], total: 0 });
  return { api: { GET, POST: change, PUT: change, PATCH: change } };
});

const nothing = () => undefined;
let root: Root;

beforeEach(() => {
  vi.stubGlobal('IS_REACT_ACT_ENVIRONMENT', true);
  sent.length = 0;
  stored.clear();
  document.body.innerHTML = '<main></main>';
  root = createRoot(document.body.firstElementChild ?? document.body);
});

afterEach(() => {
  act(() => root.unmount());
  vi.unstubAllGlobals();
});

/** Lets answers arrive and be drawn: by turns of the event loop, since a busy machine is late with all of them. */
async function settle() {
  for (let turn = 0; turn < 5; turn += 1) await act(() => new Promise((done) => setTimeout(done)));
}

const ENGLISH: Loaded = { language: 'en', messages: en };

async function draw(content: ReactNode, initial = ENGLISH) {
  const client = new QueryClient();
  client.setQueryData(['me'], { role: 'super_admin', permissions: PERMISSIONS });
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

function field(name: string): HTMLInputElement {
  const found = document.querySelector<HTMLInputElement>(`form [name="${name}"]`);
  if (found === null) throw new Error(`there is no field ${name}`);
  return found;
}

const fill = (name: string, text: string) => type(field(name), text);

/** Types as React notices it. */
function type(input: HTMLInputElement | null, text: string) {
  if (input === null) throw new Error('there is no field');
  const prototype: unknown = Object.getPrototypeOf(input);
  act(() => {
    Object.getOwnPropertyDescriptor(prototype, 'value')?.set?.call(input, text);
    input.dispatchEvent(new Event('input', { bubbles: true }));
    input.dispatchEvent(new Event('change', { bubbles: true }));
  });
}

async function save() {
  const form = [...document.querySelectorAll('form')].at(-1);
  act(() => void form?.dispatchEvent(new Event('submit', { bubbles: true, cancelable: true })));
  await settle();
}

async function press(text: string) {
  const buttons = [...document.querySelectorAll('button')];
  const button = buttons.find((one) => one.textContent === text || one.getAttribute('aria-label') === text);
  if (button === undefined) throw new Error(`there is no button ${text}`);
  act(() => button.click());
  await settle();
}

/** What stands at a field that was refused. */
function problem(name: string): string | null {
  const ids = field(name).getAttribute('aria-describedby')?.split(' ') ?? [];
  const texts = ids.map((id) => document.getElementById(id));
  return texts.find((one) => one?.getAttribute('role') === 'alert')?.textContent ?? null;
}

const USER = { id: 'u1', email: 'ada@example.test', name: 'Ada', department: '', quota_daily: 5000 } as User;
const SERVER = {
  id: 'quay',
  name: 'Quay',
  host: 'quay.test',
  ssh_port: 2222,
  ssh_user: 'ops',
  ssh_key_path: '',
  expected_host_key: '',
  base_dir: '/srv/a',
  notes: '',
  status: 'active',
  has_ssh_key: true,
  host_key: '',
} as Server;
const INSTANCE = {
  id: 'a',
  name: 'A',
  model: '',
  gateway_port: 18789,
  gateway_url: 'ws://127.0.0.1:18789',
  notes: '',
} as InstanceDetail;
const PROFESSION = {
  id: 'p1',
  name: 'Clerk',
  code: 'clerk',
  icon: '🗂',
  tagline: 'Files things',
  description: '',
  role_pack_id: 'pack-1',
  sort_order: 3,
  is_official: 0,
  is_active: 1,
} as Profession;
const MODEL = {
  id: 'm',
  provider: 'p',
  enabled: true,
  chain: null,
  price_per_1k: 0.003,
  by_kind: false,
  prices: [],
  context_window: null,
};
const RULE = {
  id: 'key_balance_low',
  enabled: true,
  threshold: 5,
  channel: 'https://hooks.example.test/x',
  signing_secret: null,
};
const UNLIMITED: LimitValues = { memory_mib: null, cpu_percent: null, tasks: null, disk_mib: null };

const user = (of?: User) => draw(<UserForm user={of} onClose={nothing} />);
const server = (of?: Server) => draw(<ServerForm server={of} onClose={nothing} />);
const profession = (of?: Profession) => draw(<ProfessionForm profession={of} onClose={nothing} />);
const key = () => draw(<MakeKey onClose={nothing} onDone={nothing} />);
const create = () => draw(<CreateInstance onClose={nothing} onDone={nothing} />);
const edit = () => draw(<EditInstance instance={INSTANCE} onClose={nothing} />);
async function price() {
  stored.set('/models', { list: [MODEL], total: 1 });
  await draw(<ModelTable />);
  await press('Price of m');
}
async function alertRule(rule: object = RULE) {
  stored.set('/alerts/rules', { list: [rule], total: 1 });
  await draw(<Alerts />);
  await press('Edit');
}
const limits = (values = UNLIMITED) =>
  draw(
    <LimitsDialog
      name="A"
      lead=""
      values={values}
      otherwise={() => '2048'}
      save={(body) => Promise.resolve(sent.push(body))}
      onDone={nothing}
      onClose={nothing}
    />,
  );

/** Every number of the console: where it stands, what its field is called, a text that it takes and what is sent for it. */
const NUMBERS: [string, () => Promise<void>, string, string, number][] = [
  ['quota of an employee', () => user(USER), 'quota_daily', '1,000', 1000],
  ['quota of a new employee', () => user(), 'quota_daily', '1 000 000', 1_000_000],
  ['limit of a key', key, 'quota', '1,000.50', 1000.5 * 500_000],
  ['price', price, 'price_per_1k', '0.000000001', 0.000000001],
  ['threshold', () => alertRule(), 'threshold', '7.5', 7.5],
  ['SSH port', () => server(SERVER), 'ssh_port', '22', 22],
  ['SSH port of a new server', () => server(), 'ssh_port', '２２２２', 2222],
  ['port', edit, 'gateway_port', '18790', 18_790],
  ['port of a new instance', create, 'gateway_port', '18,790', 18_790],
  ['order of a profession', () => profession(PROFESSION), 'sort_order', '-1', -1],
  ['limit of memory', () => limits(), 'memory_mib', '4,096', 4096],
];

describe.each(NUMBERS)('%s', (_, open, name, text, value) => {
  it('refuses at its field what is no number, and an emptied field', async () => {
    await open();
    for (const bad of ['abc', '100k', '1,00', ' ']) {
      fill(name, bad);
      await save();
      expect(sent, bad).toEqual([]);
      expect(problem(name), bad).toContain(bad === ' ' ? 'Enter a number' : 'not a number');
    }
  });

  it(`reads ${text}`, async () => {
    await open();
    fill(name, text);
    await save();
    expect(sent).toEqual([expect.objectContaining({ [name]: value })]);
  });
});

// The price takes nine decimals, so that there it is one dollar to everybody who reads English or Chinese.
it.each(NUMBERS.filter(([, , name]) => name !== 'price_per_1k'))(
  '%s refuses 1.000, which is one to some and a thousand to others',
  async (_, open, name) => {
    await open();
    fill(name, '1.000');
    await save();
    expect(sent).toEqual([]);
    expect(problem(name)).toContain('two ways');
  },
);

it.each([
  ['quota', () => user(USER), 'quota_daily', ['0', '-1', '1.5']],
  ['key', key, 'quota', ['0', '-1', '0.001']],
  ['price', price, 'price_per_1k', ['-0.1', '0.0000000001', '1000001']],
  ['SSH port', () => server(SERVER), 'ssh_port', ['0', '65536', '22.5']],
  ['port', edit, 'gateway_port', ['1023', '65536']],
  ['threshold', () => alertRule(), 'threshold', ['-5']],
  ['memory', () => limits(), 'memory_mib', ['255', '1048577']],
] as const)('the %s refuses what is out of its range', async (_, open, name, texts) => {
  await open();
  for (const text of texts) {
    fill(name, text);
    await save();
    expect(problem(name), text).toBeTruthy();
  }
  expect(sent).toEqual([]);
});

it('refuses in the language of the page', async () => {
  await draw(<UserForm user={USER} onClose={nothing} />, { language: 'zh', messages: zh });
  fill('quota_daily', '100k');
  await save();
  expect(problem('quota_daily')).toBe(zh['number.notANumber']);
  fill('quota_daily', '');
  await save();
  expect(problem('quota_daily')).toBe('请输入数字，或选择“不限”。');
  fill('quota_daily', '１，０００');
  await save();
  expect(sent).toEqual([{ quota_daily: 1000 }]);
});

describe('no number is a choice of its own', () => {
  const tick = (name: string) => act(() => field(`${name}_none`).click());

  it.each([
    ['quota', () => user(USER), 'quota_daily', { quota_daily: 0 }],
    ['threshold', () => alertRule(), 'threshold', { threshold: null }],
    [
      'memory',
      () => limits({ ...UNLIMITED, memory_mib: 4096, tasks: 900 }),
      'memory_mib',
      { ...UNLIMITED, tasks: 900 },
    ],
  ] as const)('the %s goes back to it when it is chosen', async (_, open, name, body) => {
    await open();
    expect(field(`${name}_none`).checked).toBe(false);
    tick(name);
    expect(field(name).value).toBe('');
    await save();
    expect(sent).toEqual([expect.objectContaining(body)]);
  });

  it.each([
    ['quota', () => user(), 'quota_daily', 0],
    ['key', key, 'quota', undefined],
    ['port', create, 'gateway_port', undefined],
    ['memory', () => limits(), 'memory_mib', null],
  ] as const)(
    'a new %s begins with it, and a number that is typed replaces it',
    async (_, open, name, none) => {
      await open();
      expect(field(`${name}_none`).checked).toBe(true);
      await save();
      expect((sent[0] as Record<string, unknown>)[name]).toBe(none);
      fill(name, '2');
      expect(field(`${name}_none`).checked).toBe(false);
      fill(name, '');
      expect(field(`${name}_none`).checked).toBe(false);
      await save();
      expect(sent).toHaveLength(1);
      expect(problem(name)).toContain('Enter a number, or choose');
    },
  );
});

describe('the SSH key of a server', () => {
  it('stays when anything else is changed', async () => {
    await server(SERVER);
    fill('notes', 'by the window');
    await save();
    expect(sent[0]).toHaveProperty('notes', 'by the window');
    expect(sent[0]).not.toHaveProperty('ssh_key');
  });

  it('is replaced by another one', async () => {
    await server(SERVER);
    fill('ssh_key', 'another key');
    await save();
    expect(sent).toEqual([{ ssh_key: 'another key' }]);
  });

  it('is removed once the server’s id was typed', async () => {
    await draw(<SshKeyFact server={SERVER} />);
    await press('Remove the key');
    await save();
    expect(sent).toEqual([]);
    type(document.querySelector<HTMLInputElement>('form input'), 'quay');
    await save();
    expect(sent).toEqual([{ ssh_key: null }]);
  });

  it('has no such button where none is stored', async () => {
    await draw(<SshKeyFact server={{ ...SERVER, has_ssh_key: false, ssh_key_path: '/keys/quay' }} />);
    expect(document.querySelector('main')?.textContent).toBe('/keys/quay');
  });
});

describe('what was not changed is not sent', () => {
  it('neither a server’s key nor anything else of it', async () => {
    await server(SERVER);
    fill('notes', 'by the window');
    await save();
    expect(sent).toEqual([{ notes: 'by the window' }]);
  });

  it('nor an employee’s password, nor their quota', async () => {
    await user(USER);
    fill('department', 'Sales');
    await save();
    expect(sent).toEqual([{ department: 'Sales' }]);
  });

  it('nor an administrator’s password and role', async () => {
    const admin = { email: 'a@b.test', name: 'A', role: 'super_admin' } as Admin;
    await draw(<AdminForm admin={admin} onClose={nothing} onDone={nothing} />);
    fill('name', 'B');
    await save();
    expect(sent).toEqual([{ name: 'B' }]);
  });

  it('nor an instance’s token, nor a model that it never had', async () => {
    stored.set('/models', { list: [MODEL], total: 1 });
    await edit();
    fill('notes', 'quiet');
    await save();
    expect(sent).toEqual([{ notes: 'quiet' }]);
  });

  it('nor a profession’s role pack, though the list of packs is without it', async () => {
    await profession(PROFESSION);
    fill('tagline', 'Files everything');
    await save();
    expect(sent).toEqual([{ tagline: 'Files everything' }]);
  });

  it('nor a rule’s webhook', async () => {
    await alertRule();
    fill('threshold', '7');
    await save();
    expect(sent).toEqual([{ enabled: true, threshold: 7 }]);
  });

  it('nor the files of a marketplace item', async () => {
    const files = [{ path: 'SKILL.md', scope: 'workspace', content: '# A', findings: [] }];
    const item = {
      id: 'i',
      type: 'skill',
      name: 'A',
      icon: '',
      version: '1.0.0',
      description: '',
      is_active: 1,
    };
    stored.set('/marketplace-items/{id}', { ...item, files, professions: [] });
    await draw(<ItemPanel id="i" onClose={nothing} />);
    const offered = document.querySelector<HTMLInputElement>('form input[type=checkbox]');
    act(() => offered?.click());
    await save();
    expect(sent).toEqual([{ is_active: 0 }]);
  });
});

it('keeps a webhook whose field was emptied, and says how it is removed', async () => {
  await alertRule();
  fill('channel', '');
  await save();
  expect(sent).toEqual([]);
  expect(problem('channel')).toContain('Remove webhook');
});

it('removes a webhook when that is confirmed', async () => {
  stored.set('/alerts/rules', { list: [RULE], total: 1 });
  await draw(<Alerts />);
  await press('Remove webhook');
  expect(sent).toEqual([]);
  await save();
  expect(sent).toEqual([{ enabled: true, channel: null }]);
});

it('sends no null for what a new record leaves out', async () => {
  await user();
  fill('email', 'new@example.test');
  await save();
  await server();
  await save();
  await profession();
  await save();
  await create();
  await save();
  await key();
  await save();
  expect(sent).toHaveLength(5);
  for (const body of sent) expect(Object.values(body as object)).not.toContain(null);
});
