// @vitest-environment happy-dom
// One request: what is known of it is shown, and what nobody said is "Not known", and no zero.
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { I18nProvider } from '@tidepool/shared/i18n/i18n';
import { act } from 'react';
import { createRoot, type Root } from 'react-dom/client';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Route, Router } from 'wouter';
import { memoryLocation } from 'wouter/memory-location';
import { dictionaries } from '../messages';
import { en } from '../messages/en';
import RequestPage from '../pages/request';

const { asked, answer } = vi.hoisted(() => {
  const answer: { current: Record<string, unknown> } = { current: {} };
  return { asked: [] as unknown[], answer };
});

vi.mock('../api', () => ({
  api: {
    GET: (path: string, options: unknown) => {
      asked.push([path, options]);
      return Promise.resolve({ data: { code: 0, msg: '', data: answer.current }, response: new Response() });
    },
  },
}));

const LITTLE = {
  id: 7,
  created_at: '2026-06-10T10:00:00Z',
  instance_name: 'of-nobody',
  instance_id: null,
  user_email: '',
  former_employee: false,
  model: 'gpt-4o',
  asked_model: '',
  provider: 'ch-1',
  key_hint: '',
  protocol: '',
  tokens_in: 1000,
  tokens_out: 200,
  known_input_tokens: null,
  cache_read_tokens: null,
  cache_write_tokens: null,
  reasoning_tokens: null,
  retries: null,
  first_byte_ms: null,
  duration_ms: 900,
  cost: 0.0025,
  cost_exact: '0.002500000',
  status: 'error',
  estimated: false,
  error_message: 'the provider answered 529',
  request_id: 'r-7',
  gateway_token_name: 'of-nobody',
  is_stream: false,
};

let root: Root;

beforeEach(() => {
  vi.stubGlobal('IS_REACT_ACT_ENVIRONMENT', true);
  asked.length = 0;
  document.body.innerHTML = '<main></main>';
  root = createRoot(document.body.firstElementChild ?? document.body);
});

afterEach(() => {
  act(() => root.unmount());
  vi.unstubAllGlobals();
});

async function draw(request: Record<string, unknown>) {
  answer.current = request;
  const { hook } = memoryLocation({ path: '/requests/7' });
  await act(async () => {
    root.render(
      <QueryClientProvider client={new QueryClient()}>
        <I18nProvider dictionaries={dictionaries} initial={{ language: 'en', messages: en }}>
          <Router hook={hook}>
            <Route path="/requests/:id">
              <RequestPage />
            </Route>
          </Router>
        </I18nProvider>
      </QueryClientProvider>,
    );
    await Promise.resolve();
  });
  await act(() => vi.waitFor(() => expect(document.querySelector('dt')).not.toBeNull()));
}

/** The value beside a name. */
const factOf = (name: string) =>
  [...document.querySelectorAll('dt')].find((term) => term.textContent === name)?.nextElementSibling
    ?.textContent;

it('says "Not known" of what nobody said', async () => {
  await draw(LITTLE);
  expect(asked).toEqual([['/llm-request-logs/{id}', { params: { path: { id: 7 } } }]]);
  for (const name of [
    'cacheRead',
    'cacheWrite',
    'reasoning',
    'retries',
    'firstByte',
    'key',
    'protocol',
  ] as const)
    expect(factOf(en[`request.${name}`]), name).toBe(en['request.unknown']);
  expect(factOf(en['requests.error'])).toBe('the provider answered 529');
  expect(factOf(en['usage.cost_usd'])).toBe('$0.002500000');
  expect(document.querySelector('a[href*="open="]')).toBeNull();
});

it('shows what is known, zeros among it', async () => {
  await draw({
    ...LITTLE,
    instance_id: 'a0',
    instance_name: 'Pearl',
    status: 'success',
    error_message: '',
    asked_model: 'claude-opus-4-6',
    key_hint: '…7f3a',
    protocol: 'messages',
    cache_read_tokens: 620,
    cache_write_tokens: 0,
    retries: 2,
    first_byte_ms: 310,
  });
  expect(factOf(en['request.cacheRead'])).toBe('620');
  expect(factOf(en['request.cacheWrite'])).toBe('0');
  expect(factOf(en['request.retries'])).toBe('2');
  expect(factOf(en['request.firstByte'])).toBe('310 ms');
  expect(factOf(en['request.askedModel'])).toBe('claude-opus-4-6');
  expect(factOf(en['request.key'])).toBe('…7f3a');
  expect(factOf(en['requests.error'])).toBeUndefined();
  expect(document.querySelector('a[href="/instances?open=a0"]')?.textContent).toBe('Pearl');
});

it('marks somebody who has left', async () => {
  await draw({ ...LITTLE, user_email: 'rosa@example.com' });
  expect(factOf(en['requests.user'])).toBe('rosa@example.com');
  act(() => root.unmount());
  root = createRoot(document.body.firstElementChild ?? document.body);
  await draw({ ...LITTLE, user_email: 'rosa@example.com', former_employee: true });
  expect(factOf(en['requests.user'])).toBe(`rosa@example.com ${en['usage.former']}`);
});
