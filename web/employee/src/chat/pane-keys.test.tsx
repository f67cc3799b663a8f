// @vitest-environment happy-dom
// One can write at once, comes back to the composer by one key, and is told of a long reply that ends while the page is hidden.
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { I18nProvider } from '@tidepool/shared/i18n/i18n';
import { act } from 'react';
import { createRoot, type Root } from 'react-dom/client';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Router } from 'wouter';
import { memoryLocation } from 'wouter/memory-location';
import Frame from '../frame';
import type { Instance } from '../instances-query';
import { dictionaries } from '../messages';
import { en } from '../messages/en';
import { PROFILE } from '../profile-query';
import { EMPTY, type EngineState, type Message } from './engine/types';
import type { Chat } from './use-chat';
import { Pane } from './view/pane';

vi.mock('../api', () => ({ api: { GET: () => new Promise(() => null) }, session: {} }));
vi.mock('@tidepool/shared/account/use-options', () => ({ useOptions: () => ({}) }));
vi.mock('@tidepool/shared/account/use-logout', () => ({ useLogout: () => () => Promise.resolve() }));
vi.mock('./view/thread-view', () => ({ ThreadView: () => null }));

let root: Root;
let hidden: boolean;

beforeEach(() => {
  vi.stubGlobal('IS_REACT_ACT_ENVIRONMENT', true);
  vi.spyOn(document, 'hidden', 'get').mockImplementation(() => hidden);
  hidden = false;
  localStorage.clear();
  document.title = 'Reef · tidepool';
  document.body.innerHTML = '<div></div>';
  root = createRoot(document.body.firstElementChild ?? document.body);
});

afterEach(() => {
  act(() => root.unmount());
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

const client = new QueryClient({ defaultOptions: { queries: { staleTime: Infinity } } });
client.setQueryData(PROFILE, { id: 'ada', quota_daily: 0 });
const location = memoryLocation({ path: '/' });

function draw(messages: Message[] = []) {
  const state: EngineState = { ...EMPTY, connection: { state: 'live' }, loaded: true, messages };
  const engine = { kind: 'socket' } as Chat['engine'];
  const chat: Chat = {
    engine,
    state,
    unsaved: new Map(),
    retrySave: () => undefined,
    preference: 'auto',
    prefer: () => undefined,
    fallback: null,
  };
  act(() =>
    root.render(
      <QueryClientProvider client={client}>
        <I18nProvider dictionaries={dictionaries} initial={{ language: 'en', messages: en }}>
          <Router hook={location.hook} searchHook={location.searchHook}>
            <Frame>
              <Pane
                account="ada"
                instance={{ id: 'reef', name: 'Reef' } as Instance}
                chat={chat}
                columnShown
                onShowColumn={() => undefined}
              />
            </Frame>
          </Router>
        </I18nProvider>
      </QueryClientProvider>,
    ),
  );
}

const composer = () => document.querySelector('textarea');

function press(key: string, target: Element = document.activeElement ?? document.body) {
  const event = new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true });
  act(() => void target.dispatchEvent(event));
  return event.defaultPrevented;
}

async function help() {
  for (let turn = 0; turn < 100; turn += 1) await act(() => new Promise((next) => setTimeout(next, 5)));
  return document.querySelector('[role=dialog]');
}

it('the composer has the focus from the start, unless a touch would bring up a keyboard', () => {
  draw();
  expect(document.activeElement).toBe(composer());
  act(() => root.unmount());
  root = createRoot(document.body.firstElementChild ?? document.body);
  vi.stubGlobal('matchMedia', (query: string) => ({ matches: query === '(pointer: coarse)' }));
  draw();
  expect(document.activeElement).not.toBe(composer());
});

it('/ leads to the composer from everywhere else, and is a letter in it', () => {
  draw();
  expect(press('/')).toBe(false);
  act(() => composer()?.blur());
  expect(press('/', document.body)).toBe(true);
  expect(document.activeElement).toBe(composer());
});

it('? shows the keys, is a letter in the composer, and can be switched off', async () => {
  draw();
  expect(press('?')).toBe(false);
  expect(await help()).toBeNull();
  act(() => composer()?.blur());
  expect(press('?', document.body)).toBe(true);
  const dialog = await help();
  expect(dialog?.textContent).toContain(en['help.title']);
  act(() => dialog?.querySelector<HTMLInputElement>('input[type=checkbox]')?.click());
  act(() => dialog?.querySelector<HTMLButtonElement>(`[aria-label="${en['dialog.close']}"]`)?.click());
  expect(await help()).toBeNull();
  act(() => composer()?.blur());
  expect(press('?', document.body)).toBe(false);
  expect(press('/', document.body)).toBe(false);
});

const reply = (status: Message['status'], at: number): Message => ({
  id: 'r',
  role: 'assistant',
  text: 'Tides',
  at,
  status,
});

it.each([
  ['a long reply while the page is hidden', 60_000, true, 1],
  ['a short one', 1000, true, 0],
  ['one that is seen', 60_000, false, 0],
])('is told of %s', (_, took, away, told) => {
  const shown: string[] = [];
  class Told {
    static permission = 'granted';
    constructor(text: string) {
      shown.push(text);
    }
    close() {
      return;
    }
  }
  vi.stubGlobal('Notification', Told);
  const began = Date.now() - took;
  draw([reply('streaming', began)]);
  const title = document.title;
  hidden = away;
  draw([reply('done', began)]);
  expect(shown).toHaveLength(told);
  expect(document.title).toBe(told ? `${en['chat.replyReady']} · ${title}` : title);
  hidden = false;
  act(() => void document.dispatchEvent(new Event('visibilitychange')));
  expect(document.title).toBe(title);
});

it('asks for no leave to notify', () => {
  const asked = vi.fn();
  vi.stubGlobal('Notification', Object.assign(asked, { permission: 'default', requestPermission: asked }));
  draw([reply('streaming', 0)]);
  hidden = true;
  draw([reply('done', 0)]);
  expect(document.title).toContain(en['chat.replyReady']);
  expect(asked).not.toHaveBeenCalled();
});
