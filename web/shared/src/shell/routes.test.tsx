// @vitest-environment happy-dom
// A page whose code cannot be fetched says that there is no network, and opens by itself when there is one.
import { act } from 'react';
import { createRoot, type Root } from 'react-dom/client';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Router } from 'wouter';
import { memoryLocation } from 'wouter/memory-location';
import { en } from '../i18n/en';
import { I18nProvider } from '../i18n/i18n';
import type { Session } from '../session/session';
import { appRoutes } from './routes';

vi.mock('../account/guard', () => ({
  RequireSession: ({ children }: { children: React.ReactNode }) => children,
}));

const session = { state: () => ({ token: 'secret', endReason: null, epoch: 0 }) } as unknown as Session;
const page = (text: string) => ({ default: () => <h1>{text}</h1> });

let root: Root;
let location: ReturnType<typeof memoryLocation>;
let online: boolean;
/** Whether a request for a file finds the server. */
let reachable: boolean;
/** Whether an import of the page's code finds its file. */
let loads: () => boolean;
let tried: number;
const reload = vi.fn();

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] });
  vi.stubGlobal('IS_REACT_ACT_ENVIRONMENT', true);
  vi.spyOn(console, 'error').mockImplementation(() => undefined);
  vi.spyOn(navigator, 'onLine', 'get').mockImplementation(() => online);
  vi.spyOn(window.location, 'reload').mockImplementation(reload);
  vi.stubGlobal('fetch', () =>
    reachable ? Promise.resolve(new Response(null)) : Promise.reject(new TypeError('Failed to fetch')),
  );
  reload.mockClear();
  sessionStorage.clear();
  tried = 0;
  online = reachable = true;
  document.body.innerHTML = '<div></div>';
  root = createRoot(document.body.firstElementChild ?? document.body);
  location = memoryLocation({ path: '/', record: true });
});

afterEach(() => {
  act(() => root.unmount());
  vi.useRealTimers();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

/** In steps, since what a timer changes is drawn after each. */
async function pass(ms: number) {
  for (let left = ms; left >= 0; left -= 500)
    await act(() => vi.advanceTimersByTimeAsync(Math.min(left, 500)));
}
const text = () => document.body.textContent;

async function goToUsage() {
  const content = appRoutes({
    session,
    login: () => Promise.resolve(page('Sign in')),
    frame: () => Promise.resolve({ default: ({ children }) => <main>{children}</main> }),
    pages: {
      '/': () => Promise.resolve(page('Chat')),
      '/usage': () => {
        tried += 1;
        return loads() ? Promise.resolve(page('Usage')) : Promise.reject(new TypeError('Failed to fetch'));
      },
    },
  });
  act(() =>
    root.render(
      <I18nProvider
        dictionaries={{ en, load: { zh: () => Promise.resolve(en) } }}
        initial={{ language: 'en', messages: en }}
      >
        <Router hook={location.hook}>{content}</Router>
      </I18nProvider>,
    ),
  );
  await pass(0);
  expect(text()).toBe('Chat');
  act(() => location.navigate('/usage'));
  await pass(0);
}

it('says that the device is offline, and opens when it is online', async () => {
  online = reachable = false;
  loads = () => reachable;
  await goToUsage();
  expect(text()).toContain(en['state.offline']);
  expect(text()).not.toContain(en['state.broken']);
  await pass(20_000);
  expect(text()).toContain(en['state.offline']);
  // Nothing is fetched, and kept as failed by the browser, as long as the server does not answer.
  expect(tried).toBe(1);

  online = reachable = true;
  act(() => void window.dispatchEvent(new Event('online')));
  await pass(0);
  expect(text()).toBe('Usage');
  expect(reload).not.toHaveBeenCalled();
});

it('after an outage of the server it opens by itself', async () => {
  reachable = false;
  loads = () => reachable;
  await goToUsage();
  expect(text()).toContain(en['state.unreachable']);
  reachable = true;
  await pass(2000);
  expect(text()).toBe('Usage');
});

it('leaves a page that cannot be fetched for another one', async () => {
  reachable = false;
  loads = () => reachable;
  await goToUsage();
  act(() => location.navigate('/'));
  await pass(0);
  expect(text()).toBe('Chat');
  reachable = true;
  act(() => location.navigate('/usage'));
  await pass(0);
  expect(text()).toBe('Usage');
});

it('loads the document anew, once, where the browser keeps the failure or the file is gone', async () => {
  loads = () => false;
  await goToUsage();
  await pass(5000);
  expect(reload).toHaveBeenCalledOnce();

  // The new document fails like the old one.
  act(() => root.unmount());
  root = createRoot(document.body.firstElementChild ?? document.body);
  location = memoryLocation({ path: '/', record: true });
  await goToUsage();
  await pass(20_000);
  expect(reload).toHaveBeenCalledOnce();
  expect(text()).toContain(en['state.broken']);
});
