// @vitest-environment happy-dom
// What the panel of a model offers, and to whom.
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { I18nProvider } from '@tidepool/shared/i18n/i18n';
import { act } from 'react';
import { createRoot, type Root } from 'react-dom/client';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { dictionaries } from '../messages';
import { en } from '../messages/en';
import type { Model } from '../records';
import ModelPanel from './model-panel';
import { en as texts } from './model-texts';

const { rights } = vi.hoisted(() => ({ rights: new Set<string>() }));

vi.mock('../api', () => {
  const data = { code: 0, msg: '', data: { list: [], total: 0 } };
  return { api: { GET: () => Promise.resolve({ data, response: new Response() }) } };
});
vi.mock('../me', () => ({ useRights: () => ({ may: (permission: string) => rights.has(permission) }) }));

const MODEL = {
  id: 'house',
  provider: 'rack',
  upstream_name: 'house-7b',
  aliases: [],
  offers: [],
  purpose: 'chat',
  protocols: [],
  inputs: [],
  prices: [],
  origin: 'added',
  price_source: 'edited',
} as unknown as Model;

let root: Root;

beforeEach(() => {
  vi.stubGlobal('IS_REACT_ACT_ENVIRONMENT', true);
  document.body.innerHTML = '<main></main>';
  root = createRoot(document.body.firstElementChild ?? document.body);
});

afterEach(() => {
  act(() => root.unmount());
  vi.unstubAllGlobals();
});

async function offers(permissions: string[], model: Model) {
  rights.clear();
  permissions.forEach((permission) => rights.add(permission));
  await act(async () => {
    root.render(
      <QueryClientProvider client={new QueryClient()}>
        <I18nProvider dictionaries={dictionaries} initial={{ language: 'en', messages: en }}>
          <ModelPanel model={model} onClose={() => undefined} />
        </I18nProvider>
      </QueryClientProvider>,
    );
    await Promise.resolve();
  });
  return [...document.querySelectorAll('button')].some(
    (button) => button.textContent === texts['model.delete'],
  );
}

it('offers to delete what the server would delete for them', async () => {
  const table = { ...MODEL, price_source: 'table' } as Model;
  expect(await offers(['models.manage'], table)).toBe(true);
  expect(await offers(['models.manage'], MODEL)).toBe(false);
  expect(await offers(['models.manage', 'models.prices'], MODEL)).toBe(true);
  expect(await offers(['models.prices'], table)).toBe(false);
  expect(await offers(['models.manage', 'models.prices'], { ...MODEL, origin: 'release' })).toBe(false);
});
