// @vitest-environment happy-dom
// The history shows messages with their format, a conversation from its beginning, and leads back to it in the chat.
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { I18nProvider } from '@tidepool/shared/i18n/i18n';
import { act } from 'react';
import { createRoot, type Root } from 'react-dom/client';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Router } from 'wouter';
import { memoryLocation } from 'wouter/memory-location';
import { dictionaries } from './messages';
import { en } from './messages/en';
import { PAGES } from './navigation';
import History from './pages/history';

const { instances, stored } = vi.hoisted(() => ({
  instances: [] as { id: string; name: string }[],
  stored: [] as object[],
}));

vi.mock('./api', () => {
  const answer = (data: object) =>
    Promise.resolve({ data: { code: '0000', msg: 'ok', data }, response: new Response() });
  const GET = (path: string) =>
    answer(
      path === '/me/instances'
        ? { instances }
        : { messages: stored, total: stored.length, page: 1, size: 30, searched_since: null },
    );
  return { api: { GET } };
});

const message = (id: string, role: string, content: string, session_key = 'agent:main:tides') => ({
  id,
  instance_id: 'reef',
  role,
  content,
  tokens: 0,
  session_key,
  created_at: '2026-11-14T10:00:00Z',
});

let root: Root;

beforeEach(() => {
  vi.stubGlobal('IS_REACT_ACT_ENVIRONMENT', true);
  localStorage.clear();
  instances.splice(0, instances.length, { id: 'reef', name: 'Reef' });
  stored.splice(0, stored.length);
  document.body.innerHTML = '<main></main>';
  root = createRoot(document.body.firstElementChild ?? document.body);
});

afterEach(() => {
  act(() => root.unmount());
  vi.unstubAllGlobals();
});

async function draw(search = '') {
  const location = memoryLocation({ path: `/history${search}` });
  act(() =>
    root.render(
      <QueryClientProvider client={new QueryClient()}>
        <I18nProvider dictionaries={dictionaries} initial={{ language: 'en', messages: en }}>
          <Router hook={location.hook} searchHook={location.searchHook}>
            <History />
          </Router>
        </I18nProvider>
      </QueryClientProvider>,
    ),
  );
  for (let turn = 0; turn < 500 && document.querySelector('li') === null; turn += 1) await turnOver();
  for (let turn = 0; turn < 20; turn += 1) await turnOver();
}

const turnOver = () => act(() => new Promise((next) => setTimeout(next, 5)));
const items = () => [...document.querySelectorAll('main ol > li')];
const links = () =>
  [...document.querySelectorAll('a')]
    .filter(({ textContent }) => textContent === en['history.open'])
    .map((link) => link.getAttribute('href'));

it('the navigation and the palette lead there', () => {
  expect(PAGES.map(({ href }) => href)).toContain('/history');
});

it('replies have their format, prompts stay as they were typed', async () => {
  stored.push(message('2', 'assistant', 'It is **low**.'), message('1', 'user', 'Is it *low*?'));
  await draw();
  expect(items().map((item) => item.querySelector('strong')?.textContent)).toEqual(['low', undefined]);
  expect(items()[1]?.textContent).toContain('Is it *low*?');
});

it('all conversations begin with the newest message, one with its oldest', async () => {
  stored.push(message('2', 'assistant', 'An answer'), message('1', 'user', 'A question'));
  await draw();
  expect(items().map(({ textContent }) => /An answer|A question/.exec(textContent)?.[0])).toEqual([
    'An answer',
    'A question',
  ]);
  act(() => root.unmount());
  root = createRoot(document.body.firstElementChild ?? document.body);
  await draw('?instance=reef&session=agent%3Amain%3Atides');
  expect(items().map(({ textContent }) => /An answer|A question/.exec(textContent)?.[0])).toEqual([
    'A question',
    'An answer',
  ]);
});

it('a conversation that the assistant knows can be opened in the chat, others cannot', async () => {
  stored.push(message('3', 'user', 'c', ''), message('2', 'user', 'b', 'f3c1'), message('1', 'user', 'a'));
  await draw();
  expect(links()).toEqual(['/?instance=reef&conversation=agent%3Amain%3Atides']);
});

it('one of an assistant that was given back cannot, and is there to be read', async () => {
  instances.splice(0);
  stored.push(message('1', 'user', 'Is it low?'));
  await draw('?instance=reef&session=agent%3Amain%3Atides');
  expect(items()[0]?.textContent).toContain('Is it low?');
  expect(links()).toEqual([]);
});

it('a long message is cut at its lines, and whole on request', async () => {
  const code = Array.from({ length: 30 }, (_, index) => `line ${index}`).join('\n');
  stored.push(message('1', 'assistant', `\`\`\`text\n${code}\n\`\`\`\n\nThe end.`));
  await draw();
  expect(items()[0]?.textContent).toContain('line 8');
  expect(items()[0]?.textContent).not.toContain('line 20');
  expect(items()[0]?.querySelector('pre')?.textContent).not.toContain('…');
  const whole = [...document.querySelectorAll('button')].find(
    ({ textContent }) => textContent === en['history.whole'],
  );
  act(() => whole?.click());
  expect(items()[0]?.textContent).toContain('The end.');
});
