// @vitest-environment happy-dom
// What is typed while the palette's code is on its way stands in its field when it is there.
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { I18nProvider } from '@tidepool/shared/i18n/i18n';
import { act } from 'react';
import { createRoot, type Root } from 'react-dom/client';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Router } from 'wouter';
import { memoryLocation } from 'wouter/memory-location';
import Frame from './frame';
import { dictionaries } from './messages';
import { en } from './messages/en';

const code = vi.hoisted(() => {
  let arrive: () => void = () => undefined;
  const arrival = new Promise<void>((resolve) => (arrive = resolve));
  return { arrival, arrive: () => arrive() };
});

vi.mock('./api', () => ({ api: { GET: () => new Promise(() => null) } }));
vi.mock('@tidepool/shared/account/use-options', () => ({ useOptions: () => ({}) }));
vi.mock('@tidepool/shared/account/use-logout', () => ({ useLogout: () => () => Promise.resolve() }));
vi.mock('./palette', async (original) => {
  await code.arrival;
  return original();
});

let root: Root;

beforeEach(() => {
  vi.stubGlobal('IS_REACT_ACT_ENVIRONMENT', true);
  document.body.innerHTML = '<div></div>';
  root = createRoot(document.body.firstElementChild ?? document.body);
});

afterEach(() => {
  act(() => root.unmount());
  vi.unstubAllGlobals();
});

function press(key: string, more: KeyboardEventInit = {}) {
  const target = document.activeElement ?? document.body;
  const event = new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true, ...more });
  act(() => void target.dispatchEvent(event));
  return event;
}

const field = () => document.querySelector<HTMLInputElement>('[role=combobox]');

it('keeps the keys that are pressed before the palette is there', async () => {
  const location = memoryLocation({ path: '/profile' });
  act(() =>
    root.render(
      <QueryClientProvider client={new QueryClient()}>
        <I18nProvider dictionaries={dictionaries} initial={{ language: 'en', messages: en }}>
          <Router hook={location.hook} searchHook={location.searchHook}>
            <Frame>
              <textarea aria-label="composer" />
            </Frame>
          </Router>
        </I18nProvider>
      </QueryClientProvider>,
    ),
  );
  document.querySelector('textarea')?.focus();
  press('k', { ctrlKey: true });
  expect(field()).toBeNull();
  for (const key of ['u', 's', 'x']) expect(press(key).defaultPrevented).toBe(true);
  press('Backspace');
  // It would send what stands in the composer.
  expect(press('Enter').defaultPrevented).toBe(true);
  // The browser's own shortcuts stay its own.
  expect(press('r', { ctrlKey: true }).defaultPrevented).toBe(false);

  code.arrive();
  for (let turn = 0; turn < 500 && (field() === null || document.activeElement !== field()); turn += 1)
    await act(() => new Promise((next) => setTimeout(next, 10)));
  expect(field()?.value).toBe('us');
  const options = [...document.querySelectorAll('[role=option]')].map(({ textContent }) => textContent);
  expect(options).toContain(en['nav.usage']);
  expect(options).not.toContain(en['nav.profile']);
  // The field takes its keys itself now.
  expect(press('a').defaultPrevented).toBe(false);
});
