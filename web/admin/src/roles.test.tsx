// @vitest-environment happy-dom
// What each role meets in the console: the permissions are those of the server's table, a page asks for nothing that its reader
// would be refused, and offers nothing that they may not do.
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import {
  PERMISSION_ROLES,
  PERMISSIONS,
  TASK_PERMISSIONS,
  TASK_TYPES,
  type Permission,
} from '@tidepool/shared/api/registry.gen';
import { I18nProvider } from '@tidepool/shared/i18n/i18n';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { act, type ComponentType, type ReactNode } from 'react';
import { createRoot, type Root } from 'react-dom/client';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Router } from 'wouter';
import { memoryLocation } from 'wouter/memory-location';
import { en as compare } from './instance/compare-texts';
import { InstancePanel } from './instance/panel';
import { useMay } from './me';
import { dictionaries } from './messages';
import { en } from './messages/en';
import { useNavigation } from './navigation';
import { ReadablePage } from './parts/allowed';
import { useMayTask } from './parts/task-permission';
import { ROLES, type Role } from './records';

const { asked, stored } = vi.hoisted(() => ({
  /** Every request, as the server's table names operations. */
  asked: [] as string[],
  /** What GET answers, by path; an empty list otherwise. */
  stored: new Map<string, unknown>(),
}));

vi.mock('./api', () => {
  const GET = (place: string) => {
    asked.push(`GET ${place}`);
    const data = stored.get(place) ?? { list: [], total: 0 };
    return Promise.resolve({ data: { code: 0, msg: '', data }, response: new Response() });
  };
  return { api: { GET }, session: { state: () => ({ token: null }) } };
});
vi.mock('@tidepool/shared/account/use-options', () => ({ useOptions: () => ({ data: undefined }) }));

const { paths } = JSON.parse(
  readFileSync(path.join(import.meta.dirname, '../../../openapi/admin.json'), 'utf8'),
) as { paths: Record<string, Record<string, { 'x-permission'?: Permission; 'x-roles'?: Role[] }>> };
/** What the document says of each operation that needs a permission. */
const operations = new Map<string, { permission: Permission; roles?: Role[] }>(
  Object.entries(paths).flatMap(([place, methods]) =>
    Object.entries(methods).flatMap(([method, { 'x-permission': permission, 'x-roles': roles }]) =>
      permission === undefined ? [] : [[`${method.toUpperCase()} ${place}`, { permission, roles }] as const],
    ),
  ),
);
const has = (role: Role, permission: Permission) =>
  (PERMISSION_ROLES[permission] as readonly Role[]).includes(role);
const permissionsOf = (role: Role) => PERMISSIONS.filter((permission) => has(role, permission));
const mayAsk = (role: Role, operation: string) => {
  const needed = operations.get(operation)?.permission;
  return needed !== undefined && has(role, needed);
};

let root: Root;

beforeEach(() => {
  vi.stubGlobal('IS_REACT_ACT_ENVIRONMENT', true);
  // Beside the API: whether the process is ready.
  const ready = { data: { database: 'ok', gateway: { status: 'ok' }, log: { status: 'ok' } } };
  vi.stubGlobal('fetch', () => Promise.resolve(Response.json(ready)));
  asked.length = 0;
  stored.clear();
  stored.set('/llm-stats', { stats: [], total: 0, departments_since: null, stale: false, as_of: '' });
  stored.set('/task-queue', {
    list: [],
    total: 0,
    counts: { pending: 0, processing: 0, done: 0, failed: 0, dead: 0 },
  });
  stored.set('/llm-request-logs/{id}', {
    id: 7,
    created_at: '2026-11-10T08:00:00Z',
    status: 'success',
    tokens_in: 1,
    tokens_out: 1,
    duration_ms: 1,
  });
  stored.set('/guardian/stats', { dimensions: [], today: { total_events: 0, failed: 0 } });
  stored.set('/servers/{id}/detail', {
    id: 'quay',
    name: 'Quay',
    host: 'local',
    host_key_trust: 'local',
    host_key_fingerprint: '',
    openclaw_version: '',
    has_ssh_key: true,
    instances: [],
    stats: {},
  });
  document.body.innerHTML = '<main></main>';
  root = createRoot(document.body.firstElementChild ?? document.body);
});

afterEach(() => {
  act(() => root.unmount());
  vi.unstubAllGlobals();
});

/** Until all answers have arrived and are drawn. */
async function settle(client: QueryClient) {
  const pause = () => act(() => new Promise((done) => setTimeout(done, 5)));
  do await pause();
  while (client.isFetching() > 0);
  // The last answer is drawn a moment after it has arrived.
  await pause();
}

/** As somebody of this role sees it; null while the server has not said who that is. */
async function draw(content: ReactNode, role: Role | null, place = '/') {
  const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  if (role === null) client.setQueryDefaults(['me'], { enabled: false });
  else client.setQueryData(['me'], { role, email: `${role}@example.test`, permissions: permissionsOf(role) });
  const [pathname = '/', search = ''] = place.split('?');
  const { hook, searchHook } = memoryLocation({ path: pathname, searchPath: search });
  window.history.replaceState(null, '', place);
  // What was drawn before belongs to another reader.
  act(() => root.render(null));
  act(() =>
    root.render(
      <QueryClientProvider client={client}>
        <I18nProvider dictionaries={dictionaries} initial={{ language: 'en', messages: en }}>
          <Router hook={hook} searchHook={searchHook}>
            {content}
          </Router>
        </I18nProvider>
      </QueryClientProvider>,
    ),
  );
  await settle(client);
}

const text = () => document.body.textContent;
const buttons = () =>
  [...document.querySelectorAll('button')].map((one) => one.getAttribute('aria-label') ?? one.textContent);

describe('the table of permissions', () => {
  it('is what the document says of each operation', () => {
    expect(operations.size).toBeGreaterThan(100);
    for (const [operation, { permission, roles }] of operations)
      expect(roles, operation).toEqual(PERMISSION_ROLES[permission]);
    expect(new Set(Object.values(PERMISSION_ROLES).flat())).toEqual(new Set(ROLES));
    expect(permissionsOf('super_admin')).toEqual(PERMISSIONS);
  });

  it('has what each task needs', async () => {
    const found = new Map<string, boolean>();
    function Probe() {
      const mayTask = useMayTask();
      for (const type of TASK_TYPES) found.set(type, mayTask({ type }));
      found.set('leave', mayTask({ type: 'confine_instance', payload: { confined: false } }));
      return null;
    }
    for (const role of ROLES) {
      await draw(<Probe />, role);
      for (const type of TASK_TYPES)
        expect(found.get(type), `${role} ${type}`).toBe(
          role !== 'auditor' && has(role, TASK_PERMISSIONS[type]),
        );
      expect(found.get('leave'), role).toBe(role === 'super_admin');
    }
  });
});

describe('useMay', () => {
  let answers: boolean[] = [];
  function Probe({ permission }: { permission: Permission }) {
    answers.push(useMay(permission));
    return null;
  }

  it('says no until it is known who is signed in', async () => {
    answers = [];
    await draw(<Probe permission="fleet.read" />, null);
    expect(answers.at(-1)).toBe(false);
  });

  it.each(ROLES)('says of %s what the server says', async (role) => {
    answers = [];
    await draw(
      PERMISSIONS.map((permission) => <Probe key={permission} permission={permission} />),
      role,
    );
    expect(answers).toEqual(PERMISSIONS.map((permission) => has(role, permission)));
  });

  it('follows the answer of the server', async () => {
    stored.set('/auth/me', { role: 'operator', permissions: ['servers.manage'] });
    const client = new QueryClient();
    act(() =>
      root.render(
        <QueryClientProvider client={client}>
          <Probe permission="servers.manage" />
        </QueryClientProvider>,
      ),
    );
    await settle(client);
    expect(answers.at(-1)).toBe(true);
    stored.set('/auth/me', { role: 'auditor', permissions: [] });
    await act(() => client.invalidateQueries({ queryKey: ['me'] }));
    await settle(client);
    expect(answers.at(-1)).toBe(false);
  });
});

const loaders = import.meta.glob<{ default: ComponentType }>('./pages/*.tsx');
/** Of the pages that are not under their own name. */
const PLACES: Readonly<Record<string, string | undefined>> = {
  overview: '/',
  server: '/servers/quay',
  request: '/requests/7',
};
async function page(name: string, role: Role | null, query = '') {
  const load = loaders[`./pages/${name}.tsx`];
  if (load === undefined) throw new Error(`there is no page ${name}`);
  const { default: Content } = await load();
  const place = PLACES[name] ?? `/${name}`;
  await draw(
    <ReadablePage>
      <Content />
    </ReadablePage>,
    role,
    place + query,
  );
}

/** Those inside the frame; the profile is everybody's own, and needs the whole app around it. */
const PAGES = Object.keys(loaders)
  .map((file) => path.basename(file, '.tsx'))
  .filter((name) => name !== 'login' && name !== 'profile');

describe.each(ROLES)('%s', (role) => {
  const refused = () => asked.filter((operation) => !mayAsk(role, operation));

  it.each(PAGES)('is refused nothing on the page %s', async (name) => {
    await page(name, role);
    expect(document.querySelector('h1')).not.toBeNull();
    expect(refused()).toEqual([]);
    expect(text()).not.toContain(en['state.failed']);
    expect(text()).not.toContain(en['state.broken']);
  });

  it.each([
    ['keys', '?tab=keys'],
    ['keys', '?tab=models'],
    ['keys', '?tab=providers'],
    ['professions', '?tab=pool'],
    ['professions', '?tab=claims'],
    ['guardian', '?tab=repairs'],
    ['guardian', '?tab=alerts'],
    ['users', '?new=1'],
    ['users', '?import=1'],
    ['servers', '?new=1'],
    ['instances', '?new=1'],
    ['marketplace', '?open=new'],
  ])('is refused nothing at /%s%s', async (name, query) => {
    await page(name, role, query);
    expect(refused()).toEqual([]);
  });

  it('finds no page in the navigation that it cannot read', async () => {
    let hrefs: string[] = [];
    function Probe() {
      hrefs = useNavigation().map(({ href }) => href);
      return null;
    }
    await draw(<Probe />, role);
    const office = ['/users', '/usage', '/requests', '/audit'];
    expect(office.filter((href) => hrefs.includes(href))).toEqual(role === 'operator' ? [] : office);
    expect(hrefs).toContain('/servers');
  });
});

it.each(['users', 'usage', 'requests', 'request', 'audit'])(
  'tells operators that they cannot read %s',
  async (name) => {
    await page(name, 'operator');
    expect(text()).toContain('Your role cannot read this');
    expect(asked).toEqual([]);
  },
);

it('asks for nothing that it may have to hide until it is known who reads', async () => {
  await page('users', null);
  expect(asked).toEqual([]);
  expect(text()).not.toContain('Your role');
  await page('overview', null);
  expect(asked.filter((operation) => /users|llm/.test(operation))).toEqual([]);
  // The cards have their places already.
  expect(text()).toContain(en['overview.spend']);
});

it('leaves people and money out of the operator’s overview', async () => {
  const cards = ['overview.spend', 'overview.today', 'overview.providers', 'overview.employees'] as const;
  const shown = () => cards.filter((card) => text().includes(en[card]));
  await page('overview', 'operator');
  expect(shown()).toEqual([]);
  expect(text()).toContain(en['overview.tasks']);
  await page('overview', 'auditor');
  expect(shown()).toEqual(cards);
});

describe('buttons', () => {
  /** By page: what may be pressed there with a permission, and by whom. */
  const OFFERED: [string, string, readonly Role[]][] = [
    ['servers', 'servers.add', ['super_admin', 'operator']],
    ['server', 'test.run', ['super_admin', 'operator']],
    ['server', 'servers.keyRemove', ['super_admin', 'operator']],
    ['server', 'servers.prepare', ['super_admin', 'operator']],
    ['instances', 'instances.add', ['super_admin', 'admin', 'operator']],
    ['instances', 'instances.checkAll', ['super_admin', 'admin', 'operator']],
    ['users', 'users.add', ['super_admin', 'admin']],
    ['professions', 'professions.add', ['super_admin', 'admin']],
    ['marketplace', 'market.add', ['super_admin', 'admin']],
    ['keys', 'keys.add', ['super_admin', 'admin']],
    ['tasks', 'tasks.add', ['super_admin', 'admin', 'operator']],
    ['settings', 'admins.add', ['super_admin']],
  ];

  it.each(OFFERED)('%s: %s', async (name, key, roles) => {
    for (const role of ROLES) {
      await page(name, role);
      expect(buttons().includes(en[key as keyof typeof en]), role).toBe(roles.includes(role));
    }
  });

  it('a price is text for those who may not set it', async () => {
    const model = {
      id: 'm',
      provider: 'p',
      enabled: true,
      chain: null,
      price_per_1k: 0.003,
      by_kind: false,
      prices: [],
      context_window: null,
    };
    stored.set('/models', { list: [model], total: 1 });
    for (const role of ROLES) {
      await page('keys', role, '?tab=models');
      expect(text()).toContain('$0.003');
      expect(buttons().includes('Price of m'), role).toBe(role === 'super_admin');
      expect(document.querySelector<HTMLInputElement>('[role=switch]')?.disabled, role).toBe(
        role === 'operator' || role === 'auditor',
      );
    }
  });
});

describe('an instance', () => {
  const INSTANCE = {
    id: 'a',
    name: 'A',
    server_id: 'quay',
    server_name: 'Quay',
    model: '',
    health_status: 'healthy',
    gateway_token: '…beef',
    gateway_url: 'ws://127.0.0.1:18789',
    gateway_port: 18789,
    config_json: '{"models":{"apiKey":"***"}}',
    assigned_email: 'ada@example.test',
    assigned_user_id: 'u1',
    isolation: 'own',
    cell: 'confined',
    runs_as: 'a',
    container_id: '',
    home: '/srv/assistants/a',
    bindings: [{ user_id: 'u1', origin: 'assigned', created_at: '2026-01-01T00:00:00Z', ended_at: null }],
    health_fail_count: 0,
    total_requests: 0,
    total_tokens: 0,
    created_at: '2026-01-01T00:00:00Z',
  };
  const open = async (role: Role, query = '') => {
    stored.set('/instances/{id}', INSTANCE);
    stored.set('/users/{id}', { email: 'ada@example.test' });
    await draw(<InstancePanel id="a" onClose={() => undefined} />, role, `/instances?open=a${query}`);
  };
  const tabs = () => [...document.querySelectorAll('[role=tab]')].map((one) => one.textContent);

  it.each(ROLES)('asks for nothing that %s is refused', async (role) => {
    await open(role);
    expect(asked.filter((operation) => !mayAsk(role, operation))).toEqual([]);
    expect(text()).toContain('…beef');
    expect(text()).toContain('ada@example.test');
  });

  it('shows its token to those who may see secrets', async () => {
    for (const role of ROLES) {
      await open(role);
      const may = role === 'super_admin' || role === 'admin';
      expect(buttons().includes('Show Gateway token'), role).toBe(may);
      expect(buttons().includes('Copy Gateway token'), role).toBe(may);
      expect(buttons().includes('Take back'), role).toBe(may);
      expect(buttons().includes('Edit'), role).toBe(role !== 'auditor');
    }
  });

  it('has the tabs that a role can read', async () => {
    await open('operator');
    expect(tabs()).toEqual([
      'Overview',
      'Live log',
      'Configuration',
      'State',
      'Cell',
      'Tasks',
      'Bots',
      'Repairs',
    ]);
    await open('auditor');
    expect(tabs()).toEqual([
      'Overview',
      'Configuration',
      'State',
      'Cell',
      'Tasks',
      'Usage',
      'Bots',
      'Repairs',
      'Audit',
    ]);
  });

  it('says at an address why a tab is empty', async () => {
    await open('auditor', '&tab=log');
    expect(document.querySelector('[role=tab][aria-selected=true]')?.textContent).toBe('Live log');
    expect(text()).toContain('Your role cannot read this');
  });

  it('is brought and held by those who manage instances', async () => {
    const differs = { name: 'a.b', desired: '1', observed: '2', effect: 'hot' };
    stored.set('/instances/{id}/state', { fields: [differs], foreign: [], steps: [], next: 'reconcile' });
    for (const role of ROLES) {
      await open(role, '&tab=state');
      const may = has(role, 'instances.manage');
      expect(buttons().includes(compare['compare.bring']), role).toBe(may);
      expect(buttons().includes(compare['hold.begin']), role).toBe(may);
      expect(asked.filter((operation) => !mayAsk(role, operation))).toEqual([]);
      asked.length = 0;
    }
  });

  it('keeps a configuration with masked secrets from being saved', async () => {
    const editor = () => document.querySelector('textarea');
    stored.set('/instances/{id}/config', { drift: [], hash: '', config: {}, untouched: true });
    await open('admin', '&tab=config');
    expect(editor()?.readOnly).toBe(false);
    await open('operator', '&tab=config');
    expect(editor()?.readOnly).toBe(true);
    expect(text()).toContain(en['config.masked']);
    expect(asked.filter((operation) => !mayAsk('admin', operation))).toEqual([]);
  });
});
