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

const { rights, asked } = vi.hoisted(() => ({ rights: new Set<string>(), asked: { times: 0 } }));

vi.mock('../api', () => {
  const data = { code: 0, msg: '', data: { list: [], total: 0 } };
  const GET = () => {
    asked.times += 1;
    return Promise.resolve({ data, response: new Response() });
  };
  return { api: { GET } };
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

async function offers(permissions: string[], model: Model, client = new QueryClient()) {
  rights.clear();
  permissions.forEach((permission) => rights.add(permission));
  await act(async () => {
    root.render(
      <QueryClientProvider client={client}>
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

it('asks for no prices of a model while it is deleted', async () => {
  const client = new QueryClient();
  await offers(['models.manage', 'models.prices'], MODEL, client);
  const button = [...document.querySelectorAll('button')].find(
    (one) => one.textContent === texts['model.delete'],
  );
  await act(async () => {
    button?.click();
    await Promise.resolve();
  });
  const before = asked.times;
  // As the server's word does that models changed, which comes before the answer to the deletion.
  await act(() => client.invalidateQueries({ queryKey: ['models'] }));
  expect(asked.times).toBe(before);
});
