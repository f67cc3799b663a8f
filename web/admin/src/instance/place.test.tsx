// @vitest-environment happy-dom
// Where an instance is: what is offered for one that is on no server, what its making and a look say of what was found, and what
// its moves into a cell and back send.
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import type { Permission } from '@tidepool/shared/api/registry.gen';
import { I18nProvider } from '@tidepool/shared/i18n/i18n';
import { act, type ReactNode } from 'react';
import { createRoot, type Root } from 'react-dom/client';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { dictionaries } from '../messages';
import { en as general } from '../messages/en';
import type { CellDetail, InstanceDetail, PlaceFound } from '../records';
import { CellTab } from './cell-tab';
import { CreateInstance } from './create';
import { NotOnServer } from './place';

const { sent, stored, toasts } = vi.hoisted(() => ({
  /** What was sent: the method, the path and the body. */
  sent: [] as unknown[],
  /** What is answered, by path. */
  stored: new Map<string, unknown>(),
  toasts: [] as string[],
}));

vi.mock('../api', () => {
  const answer = (path: string) =>
    Promise.resolve({
      data: { code: 0, msg: '', data: stored.get(path) ?? { list: [], total: 0, task_id: 't1', id: 't1' } },
      response: new Response(),
    });
  const POST = (path: string, { body }: { body?: unknown } = {}) => {
    sent.push([path, body]);
    return answer(path);
  };
  return { api: { GET: answer, POST } };
});
vi.mock('@tidepool/shared/ui/toast', () => ({ toast: (_: string, text: string) => toasts.push(text) }));

const INSTANCE = {
  id: 'pearl',
  name: 'Pearl',
  server_id: 'quay',
  server_name: 'Quay',
  gateway_port: 18_789,
  gateway_url: 'ws://127.0.0.1:18789',
  is_main: false,
  home: '',
  unit: '',
  container_id: '',
  runner: 'unit',
  isolation: 'none',
  cell: 'unknown',
  own_llm: false,
  assigned_email: null,
  moved_from: null,
  pool_entry: null,
} as unknown as InstanceDetail;

const ADOPTED: Partial<InstanceDetail> = {
  runner: 'user_unit',
  unit: 'openclaw-gateway.service',
  home: '/home/ada',
  isolation: 'adopted',
  own_llm: true,
};

const CELL: CellDetail = {
  state: 'unknown',
  score: null,
  left_out: [],
  not_enforced: [],
  openings: [],
  openings_written: [],
  limits: { memory_mib: 2048, cpu_percent: 100, tasks: 512, disk_mib: 10_240 },
  own_limits: { memory_mib: null, cpu_percent: null, tasks: null, disk_mib: null },
  home_bytes: null,
  measured_at: null,
};

let root: Root;

beforeEach(() => {
  vi.stubGlobal('IS_REACT_ACT_ENVIRONMENT', true);
  sent.length = 0;
  toasts.length = 0;
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

const ALL: Permission[] = [
  'instances.adopt',
  'instances.manage',
  'instances.place',
  'tasks.manage',
  'cells.open',
];

let client: QueryClient;

async function draw(content: ReactNode, permissions = ALL) {
  // What was drawn before belongs to another reader.
  act(() => root.render(null));
  client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  client.setQueryData(['me'], { role: 'operator', permissions });
  await redraw(content);
}

/** As it looks after the record has changed. */
async function redraw(content: ReactNode) {
  act(() =>
    root.render(
      <QueryClientProvider client={client}>
        <I18nProvider dictionaries={dictionaries} initial={{ language: 'en', messages: general }}>
          {content}
        </I18nProvider>
      </QueryClientProvider>,
    ),
  );
  await settle();
}

const text = () => document.body.textContent;
const buttons = () => [...document.querySelectorAll('button')].map((one) => one.textContent);

async function press(label: string) {
  const button = [...document.querySelectorAll('button')].findLast((one) => one.textContent === label);
  if (button === undefined) throw new Error(`there is no button ${label}, but ${buttons().join(', ')}`);
  act(() => button.click());
  await settle();
}

async function submit() {
  const form = [...document.querySelectorAll('form')].at(-1);
  act(() => void form?.dispatchEvent(new Event('submit', { bubbles: true, cancelable: true })));
  await settle();
}

function type(selector: string, value: string) {
  const input = document.querySelector<HTMLInputElement>(selector);
  if (input === null) throw new Error(`there is no ${selector}`);
  const prototype: unknown = Object.getPrototypeOf(input);
  act(() => {
    Object.getOwnPropertyDescriptor(prototype, 'value')?.set?.call(input, value);
    input.dispatchEvent(new Event('input', { bubbles: true }));
  });
}

const tick = (label: string) => {
  const box = [...document.querySelectorAll('label')].find((one) => one.textContent.includes(label));
  if (box === undefined) throw new Error(`there is no box ${label}`);
  act(() => box.click());
};

describe('an instance that is on no server', () => {
  const open = (change: Partial<InstanceDetail> = {}, permissions = ALL) =>
    draw(<NotOnServer instance={{ ...INSTANCE, ...change }} />, permissions);

  it('is looked for or made, by whoever may', async () => {
    await open();
    expect(text()).toContain('It is on no server yet');
    expect(buttons()).toEqual(['Look for it on its server', 'Make it on its server']);
    await open({}, ['instances.manage', 'tasks.manage']);
    expect(buttons()).toEqual(['Make it on its server']);
    await open({}, []);
    expect(buttons()).toEqual([]);
  });

  it.each([
    [{ isolation: 'own' }],
    [{ isolation: 'adopted', runner: 'address' }],
    [{ isolation: 'none', runner: 'address' }],
  ] as const)('says nothing of one that is somewhere: %j', async (change) => {
    await open(change);
    expect(text()).toBe('');
  });

  it('is made there by a task', async () => {
    await open();
    await press('Make it on its server');
    expect(sent).toEqual([['/tasks', { type: 'provision_instance', payload: { instance_id: 'pearl' } }]]);
    expect(toasts).toEqual(['Queued: Pearl is made on its server by a task.']);
  });

  it('is not made twice', async () => {
    const task = { id: 't9', type: 'provision_instance', status: 'processing' };
    stored.set('/tasks', { list: [task], total: 1 });
    await open();
    expect(text()).toContain('A task makes it on Quay.');
    expect(buttons()).toEqual(['Watch']);
  });

  it.each<[PlaceFound, string[], string[]]>([
    [{ found: 'adopted', task_id: null }, ['It was found and adopted.'], ['Close']],
    [{ found: 'adopted', task_id: 't2' }, ['A task writes its configuration.'], ['Watch', 'Close']],
    [{ found: 'answers' }, ['It answers at its own address.'], ['Close']],
    [
      { found: 'nothing', found_detail: 'no gateway of OpenClaw has port 18789 on the server' },
      ['Nothing was adopted: no gateway of OpenClaw has port 18789 on the server.', 'It stays on no server.'],
      ['Close', 'Look again'],
    ],
  ])('says what was found: %j', async (found, said, offered) => {
    stored.set('/assistant-instances/{id}/adopt', found);
    await open();
    await press('Look for it on its server');
    expect(text()).toContain('Look for Pearl on Quay');
    await press('Look for it');
    expect(sent).toEqual([['/assistant-instances/{id}/adopt', { keeps_llm: true, restart: false }]]);
    for (const sentence of said) expect(text()).toContain(sentence);
    for (const label of offered) expect(buttons()).toContain(label);
  });

  it('gets our models, if that is wanted, and may be restarted for it', async () => {
    await open();
    await press('Look for it on its server');
    tick('Use our LLM gateway');
    tick('Restart at once what needs it');
    await press('Look for it');
    expect(sent).toEqual([['/assistant-instances/{id}/adopt', { keeps_llm: false, restart: true }]]);
  });

  it('keeps what was found in sight when the instance is on its server', async () => {
    stored.set('/assistant-instances/{id}/adopt', { found: 'adopted', task_id: null });
    await open();
    await press('Look for it on its server');
    await press('Look for it');
    await redraw(<NotOnServer instance={{ ...INSTANCE, ...ADOPTED }} />);
    expect(text()).not.toContain('It is on no server yet');
    expect(text()).toContain('It was found and adopted.');
  });
});

describe('a new instance', () => {
  const done = vi.fn();
  const closed = vi.fn();
  const create = async (made: object, permissions = ALL) => {
    done.mockClear();
    closed.mockClear();
    stored.set('/servers', { list: [{ id: 'quay', name: 'Quay' }], total: 1 });
    stored.set('/models', { list: [{ id: 'm', enabled: true }], total: 1 });
    stored.set('/assistant-instances', { ...INSTANCE, ...made });
    await draw(<CreateInstance onClose={closed} onDone={done} />, permissions);
    await submit();
  };

  it.each([
    [
      { found: 'adopted', isolation: 'adopted' },
      'Pearl is created. Its gateway was found on the server and adopted.',
    ],
    [
      { found: 'answers', runner: 'address', isolation: 'adopted' },
      'Pearl is created. It answers at its own address.',
    ],
    [{ found: 'provisioning', task_id: 't1' }, 'Pearl is created. A task makes it on its server.'],
    // The main instance, whose place is known.
    [{ found: 'not_looked', isolation: 'shared', is_main: true }, 'Pearl is created.'],
  ])('is opened, and it is said what was found: %j', async (made, said) => {
    await create(made);
    expect(toasts).toEqual([said]);
    expect([closed.mock.calls.length, done.mock.calls.length]).toEqual([1, 1]);
  });

  it.each([
    [
      { found: 'nothing', found_detail: 'its gateway has no token' },
      'Nothing was adopted: its gateway has no token.',
    ],
    [{ found: 'not_looked' }, 'tidepool did not look for it on Quay.'],
  ])('does not close silently if it is on no server: %j', async (made, said) => {
    await create(made);
    expect(toasts).toEqual([]);
    expect(closed).not.toHaveBeenCalled();
    expect(text()).toContain('Pearl is created, but it is on no server');
    expect(text()).toContain(said);
    await press('Open Pearl');
    expect([closed.mock.calls.length, done.mock.calls.length]).toEqual([1, 1]);
  });

  it('keeps its own models unless our own are wanted, and asks only whoever may adopt', async () => {
    await create({ found: 'provisioning' });
    await create({ found: 'provisioning' }, ['instances.manage']);
    const kept = sent.map((one) => (one as [string, { keeps_llm: boolean }])[1].keeps_llm);
    expect(kept).toEqual([true, true]);
    expect(text()).not.toContain('keeps its own model provider');
  });
});

describe('a cell', () => {
  const open = (change: Partial<InstanceDetail>, permissions = ALL, cell: Partial<CellDetail> = {}) => {
    stored.set('/instances/{id}/cell', { ...CELL, ...cell });
    return draw(<CellTab instance={{ ...INSTANCE, ...change }} />, permissions);
  };
  const MOVED: Partial<InstanceDetail> = {
    home: '/srv/assistants/7',
    runner: 'unit',
    isolation: 'own',
    moved_from: {
      runner: 'user_unit',
      home: '/home/ada',
      unit: 'openclaw-gateway.service',
      moved_at: '2026-06-10T10:00:00Z',
    },
  };

  it('is offered to an adopted instance, by whoever may adopt', async () => {
    await open(ADOPTED);
    expect(buttons()).toContain('Move into a cell');
    expect(buttons()).not.toContain('Bring into its cell');
    expect(buttons()).not.toContain('Change openings');
    expect(text()).toContain('It can be moved into a cell of its own.');
    await open({ ...ADOPTED, runner: 'unit' }, ALL, { state: 'foreign' });
    expect(buttons()).toContain('Move into a cell');
    await open(ADOPTED, ['instances.manage']);
    expect(buttons()).not.toContain('Move into a cell');
    await open({ ...ADOPTED, runner: 'container', container_id: 'claw', unit: '' });
    expect(buttons()).not.toContain('Move into a cell');
  });

  it('says what a move does, wants the name, and follows the task', async () => {
    await open({ ...ADOPTED, assigned_email: 'ada@example.test' });
    await press('Move into a cell');
    for (const said of [
      'interrupted for a minute or so',
      'copied from /home/ada',
      'goes back to where it was',
    ])
      expect(text()).toContain(said);
    expect(text()).toContain('ada@example.test is interrupted meanwhile.');
    await submit();
    expect(sent).toEqual([]);
    type('[role=dialog] input[autocomplete=off]', 'pearl');
    await submit();
    expect(sent).toEqual([['/instances/{id}/move-into-cell', { keeps_llm: null }]]);
    expect(toasts).toEqual(['Queued: Pearl is moved into a cell by a task.']);
  });

  it('can change the model provider with the move', async () => {
    await open(ADOPTED);
    await press('Move into a cell');
    tick('Use our LLM gateway');
    type('[role=dialog] input[autocomplete=off]', 'pearl');
    await submit();
    expect(sent).toEqual([['/instances/{id}/move-into-cell', { keeps_llm: false }]]);
  });

  it('says of a bare process that nothing could start the old one again', async () => {
    await open({ ...ADOPTED, runner: 'process', unit: '' });
    expect(text()).toContain('nothing starts it again');
    await press('Move into a cell');
    expect(text()).toContain('tidepool cannot start the old one again');
    expect(text()).not.toContain('goes back to where it was');
  });

  it('leads back to where it was, which leaves behind what was said since', async () => {
    await open(MOVED, ALL, { state: 'confined' });
    expect(text()).toContain('Moved from/home/adaA unit of its user’s own systemd');
    expect(buttons()).not.toContain('Move into a cell');
    await press('Move back');
    expect(text()).toContain('What was said since it was moved stays behind');
    type('[role=dialog] input[autocomplete=off]', 'pearl');
    await submit();
    expect(sent).toEqual([['/instances/{id}/move-back', undefined]]);
    expect(toasts).toEqual(['Queued: Pearl is moved back by a task.']);
    await open(MOVED, ['instances.adopt', 'instances.manage'], { state: 'confined' });
    expect(buttons()).not.toContain('Move back');
  });
});
