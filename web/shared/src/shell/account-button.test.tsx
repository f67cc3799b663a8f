// @vitest-environment happy-dom
// The button of the account menu is there with its name before the menu's code is, and opens the menu then.
import { act } from 'react';
import { createRoot } from 'react-dom/client';
import { expect, it, vi } from 'vitest';
import { en } from '../i18n/en';
import { I18nProvider } from '../i18n/i18n';
import { AccountMenu } from './account-button';

const code = vi.hoisted(() => {
  let arrive: () => void = () => undefined;
  const arrival = new Promise<void>((resolve) => (arrive = resolve));
  return { arrival, arrive: () => arrive() };
});

vi.mock('../account/use-logout', () => ({ useLogout: () => () => Promise.resolve() }));
vi.mock('./account-menu', async (original) => {
  await code.arrival;
  return original();
});

it('waits for its menu', async () => {
  vi.stubGlobal('IS_REACT_ACT_ENVIRONMENT', true);
  const place = document.body.appendChild(document.createElement('div'));
  const root = createRoot(place);
  act(() =>
    root.render(
      <I18nProvider
        dictionaries={{ en, load: { zh: () => Promise.resolve(en) } }}
        initial={{ language: 'en', messages: en }}
      >
        <AccountMenu account={{ name: 'Ada Lovelace', email: 'ada@example.test' }} wide />
      </I18nProvider>,
    ),
  );
  const button = () => place.querySelector('button');
  const face = place.textContent;
  expect(face).toBe('ALAda Lovelaceada@example.test');
  expect(button()?.disabled).toBe(true);
  expect(button()?.getAttribute('aria-label')).toBe('Account menu: Ada Lovelace');
  code.arrive();
  for (let turn = 0; turn < 500 && button()?.disabled; turn += 1)
    await act(() => new Promise((next) => setTimeout(next, 10)));
  expect(button()?.getAttribute('aria-haspopup')).toBe('menu');
  expect(button()?.getAttribute('aria-label')).toBe('Account menu: Ada Lovelace');
  expect(place.textContent).toBe(face);
  act(() => root.unmount());
  vi.unstubAllGlobals();
});
