// @vitest-environment happy-dom
// A window of the usage page that cannot be drawn takes nothing else of the page down, and comes back when asked.
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { I18nProvider } from '@tidepool/shared/i18n/i18n';
import { act } from 'react';
import { createRoot, type Root } from 'react-dom/client';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { SUMMARY } from '../instances-query';
import { dictionaries } from '../messages';
import { en } from '../messages/en';
import Usage from '../pages/usage';

// The other panels stay as they are while they wait.
vi.mock('../api', () => ({ api: { GET: () => new Promise(() => null) } }));

const SUMS = { requests: 3, prompt_tokens: 1, completion_tokens: 1, total_tokens: 2, cost_usd: 1.5 };
const WINDOWS = { today: SUMS, week: SUMS, month: SUMS, all_time: SUMS };
const WHOLE = { ...WINDOWS, former: WINDOWS };

let root: Root;
let queries: QueryClient;

beforeEach(() => {
  vi.stubGlobal('IS_REACT_ACT_ENVIRONMENT', true);
  vi.spyOn(console, 'error').mockImplementation(() => undefined);
  document.body.innerHTML = '<main></main>';
  root = createRoot(document.body.firstElementChild ?? document.body);
  queries = new QueryClient({ defaultOptions: { queries: { staleTime: Infinity } } });
});

afterEach(() => {
  act(() => root.unmount());
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

function draw() {
  act(() =>
    root.render(
      <QueryClientProvider client={queries}>
        <I18nProvider dictionaries={dictionaries} initial={{ language: 'en', messages: en }}>
          <Usage />
        </I18nProvider>
      </QueryClientProvider>,
    ),
  );
}

const headings = () => [...document.querySelectorAll('h1, h2')].map(({ textContent }) => textContent);

it('keeps the other panels when the windows cannot be drawn, and draws them anew on request', () => {
  queries.setQueryData(SUMMARY, { ...WHOLE, week: null });
  draw();
  const alert = document.querySelector('[role=alert]');
  expect(alert?.textContent).toContain(en['state.failed']);
  expect(headings()).toEqual(
    expect.arrayContaining([en['nav.usage'], en['usage.days'], en['usage.byModel'], en['log.title']]),
  );
  expect(headings()).not.toContain(en['usage.today']);

  act(() => {
    queries.setQueryData(SUMMARY, WHOLE);
  });
  act(() => alert?.querySelector('button')?.click());
  expect(document.querySelector('[role=alert]')).toBeNull();
  expect(headings()).toContain(en['usage.today']);
  expect(document.body.textContent).toContain('$1.50');
});
