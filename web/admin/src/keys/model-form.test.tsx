// @vitest-environment happy-dom
// What the form of a model sends: a new one by hand, and only what was changed of an old one.
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { I18nProvider } from '@tidepool/shared/i18n/i18n';
import { act } from 'react';
import { createRoot, type Root } from 'react-dom/client';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { dictionaries } from '../messages';
import { en } from '../messages/en';
import type { Model } from '../records';
import ModelForm from './model-form';

const { sent, rights } = vi.hoisted(() => ({ sent: [] as unknown[], rights: { prices: true } }));

vi.mock('../api', () => {
  const answer = (data: unknown) =>
    Promise.resolve({ data: { code: 0, msg: '', data }, response: new Response() });
  const change = (_: string, { body }: { body?: unknown }) => {
    sent.push(JSON.parse(JSON.stringify(body)));
    return answer({});
  };
  const lists: Record<string, unknown[] | undefined> = {
    '/providers': [{ id: 'p1', name: 'deepseek' }],
    '/models/table': [{ name: 'deepseek-chat', provider: 'deepseek', source_date: '2026-08-08' }],
  };
  const get = (path: string) => answer({ list: lists[path] ?? [], total: 0 });
  return { api: { GET: get, POST: change, PATCH: change } };
});
vi.mock('../me', () => ({ useMay: (permission: string) => permission !== 'models.prices' || rights.prices }));

const MODEL = {
  id: 'qwen3-max',
  kind: 'openai',
  provider: 'openai',
  upstream_name: 'qwen3-max',
  aliases: [],
  offers: [],
  purpose: 'chat',
  protocols: [],
  context_window: 258048,
  max_output_tokens: null,
  inputs: ['text'],
  reasoning: true,
  tools: null,
  prices: [
    { tier: 'standard', above: 0, input: 1.2, output: 6 },
    { tier: 'standard', above: 32000, input: 2.4, output: 12 },
  ],
} as unknown as Model;

let root: Root;

beforeEach(() => {
  vi.stubGlobal('IS_REACT_ACT_ENVIRONMENT', true);
  sent.length = 0;
  rights.prices = true;
  document.body.innerHTML = '<main></main>';
  root = createRoot(document.body.firstElementChild ?? document.body);
});

afterEach(() => {
  act(() => root.unmount());
  vi.unstubAllGlobals();
});

async function draw(model?: Model) {
  await act(async () => {
    root.render(
      <QueryClientProvider client={new QueryClient()}>
        <I18nProvider dictionaries={dictionaries} initial={{ language: 'en', messages: en }}>
          <ModelForm model={model} onClose={() => undefined} />
        </I18nProvider>
      </QueryClientProvider>,
    );
    await Promise.resolve();
  });
}

const field = (name: string) => document.querySelector<HTMLInputElement>(`[name="${name}"]`);
const settled = () => new Promise((done) => setTimeout(done, 20));

async function fill(name: string, value: string) {
  await act(async () => {
    const input = field(name);
    if (!input) throw new Error(name);
    Object.getOwnPropertyDescriptor(Object.getPrototypeOf(input), 'value')?.set?.call(input, value);
    input.dispatchEvent(new Event('input', { bubbles: true }));
    await Promise.resolve();
  });
}

async function save() {
  await act(async () => {
    document.querySelector<HTMLButtonElement>('button[type=submit]')?.click();
    await new Promise((done) => setTimeout(done));
  });
}

it('sends only what was changed', async () => {
  await draw(MODEL);
  await fill('aliases', 'best, big');
  await save();
  expect(sent).toEqual([{ aliases: ['best', 'big'] }]);
});

it('keeps the prices of other tiers and lengths', async () => {
  await draw(MODEL);
  await fill('cache_read', '0.3');
  await save();
  const standard = { input: 1.2, output: 6, cache_read: 0.3, cache_write: null, cache_write_1h: null };
  expect(sent).toEqual([{ prices: [standard, MODEL.prices[1]] }]);
});

it('adds a model by hand, with unknown for what nobody says', async () => {
  await draw();
  await fill('id', 'our-own');
  await save();
  expect(sent).toEqual([
    {
      id: 'our-own',
      kind: 'openai',
      upstream_name: null,
      aliases: [],
      offers: [],
      purpose: 'chat',
      protocols: [],
      inputs: [],
      reasoning: null,
      tools: null,
      context_window: null,
      max_output_tokens: null,
    },
  ]);
});

/** Chooses the first row of the release's table. */
async function choose(text: string) {
  const box = document.querySelector<HTMLInputElement>('[role=combobox]');
  await act(async () => {
    if (!box) throw new Error('no table');
    Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value')?.set?.call(box, text);
    box.dispatchEvent(new Event('input', { bubbles: true }));
    await settled();
  });
  const option = await vi.waitFor(async () => {
    await act(settled);
    const found = document.querySelector('[role=option]:not([aria-disabled])');
    if (!found) throw new Error('no row');
    return found;
  });
  await act(async () => {
    option.dispatchEvent(new Event('pointerdown', { bubbles: true }));
    await settled();
  });
}

it('takes a row as it is, or says who is asked in its place', async () => {
  await draw();
  await choose('deepseek');
  await save();
  await fill('kind', 'ollama');
  await fill('provider', 'rack');
  await fill('offers', 'deepseek\n groq  deepseek/chat \n');
  await save();
  const row = { id: 'deepseek-chat', aliases: [], from_table: 'deepseek-chat' };
  expect(sent).toEqual([
    { ...row, offers: [] },
    {
      ...row,
      kind: 'ollama',
      provider: 'rack',
      offers: [
        { provider: 'deepseek', upstream_name: null },
        { provider: 'groq', upstream_name: 'deepseek/chat' },
      ],
    },
  ]);
});

it('takes a row as it is for those who set no prices', async () => {
  rights.prices = false;
  await draw();
  await choose('deepseek');
  expect([field('kind'), field('provider'), field('offers')]).toEqual([null, null, null]);
  await save();
  expect(sent).toEqual([{ id: 'deepseek-chat', aliases: [], from_table: 'deepseek-chat' }]);
});

it('offers the names of the providers, and every kind', async () => {
  await draw();
  await act(settled);
  expect([...document.querySelectorAll('datalist option')].map((one) => one.getAttribute('value'))).toEqual([
    'deepseek',
  ]);
  await fill('id', 'our-own');
  await fill('kind', 'compatible');
  await fill('provider', 'deepseek');
  await save();
  expect(sent).toMatchObject([{ id: 'our-own', kind: 'compatible', provider: 'deepseek' }]);
});

it('changes further providers', async () => {
  const offers = [
    { provider: 'rack', upstream_name: 'h7' },
    { provider: 'groq', upstream_name: null },
  ];
  await draw({ ...MODEL, offers });
  expect(field('offers')?.value).toBe('rack h7\ngroq');
  await fill('aliases', 'best');
  await save();
  await fill('offers', 'groq');
  await save();
  expect(sent).toEqual([
    { aliases: ['best'] },
    { aliases: ['best'], offers: [{ provider: 'groq', upstream_name: null }] },
  ]);
});

it('leaves who is asked to those who set prices', async () => {
  rights.prices = false;
  await draw({ ...MODEL, upstream_name: 'qwen-max-latest' });
  expect([field('provider'), field('upstream_name'), field('input')]).toEqual([null, null, null]);
  await fill('aliases', 'best');
  await save();
  expect(sent).toEqual([{ aliases: ['best'] }]);
});

it('has whoever adds a model say who is asked', async () => {
  rights.prices = false;
  await draw();
  await fill('id', 'our-own');
  await fill('provider', 'rack');
  await save();
  expect(sent).toMatchObject([{ id: 'our-own', provider: 'rack', upstream_name: null }]);
});
