// @vitest-environment happy-dom
// Only what is ready is offered, and whoever claimed what could not be set up gets another one in one request.
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { I18nProvider } from '@tidepool/shared/i18n/i18n';
import { act, type ReactNode } from 'react';
import { createRoot, type Root } from 'react-dom/client';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Router } from 'wouter';
import { memoryLocation } from 'wouter/memory-location';
import type { Instance } from '../instances-query';
import { dictionaries } from '../messages';
import { en } from '../messages/en';
import { Professions } from './offers';
import SetupView from './setup-view';

const { posted, answers } = vi.hoisted(() => ({
  posted: [] as unknown[],
  /** What a request answers, by its path. */
  answers: new Map<string, { status: number; body: object }>(),
}));

vi.mock('../api', () => {
  const answer = (place: string) => {
    const { status, body } = answers.get(place) ?? {
      status: 200,
      body: { code: '0000', msg: 'ok', data: null },
    };
    const response = new Response(null, { status });
    return Promise.resolve(status === 200 ? { data: body, response } : { error: body, response });
  };
  const POST = (place: string, { params }: { params: { path: { id: string } } }) => {
    posted.push([place, params.path.id]);
    return answer(place);
  };
  return { api: { GET: answer, POST } };
});

const ok = (data: object) => ({ status: 200, body: { code: '0000', msg: 'ok', data } });
const INSTANCE = { id: 'reef', name: 'Reef' } as Instance;
const task = (status: string) => ok({ status, steps: [], attempts: 5, error: 'no answer' });

let root: Root;
let location: ReturnType<typeof memoryLocation>;

beforeEach(() => {
  vi.stubGlobal('IS_REACT_ACT_ENVIRONMENT', true);
  posted.length = 0;
  answers.clear();
  document.body.innerHTML = '<main></main>';
  root = createRoot(document.body.firstElementChild ?? document.body);
  location = memoryLocation({ path: '/', record: true });
});

afterEach(() => {
  act(() => root.unmount());
  vi.unstubAllGlobals();
});

const settled = () =>
  act(async () => {
    await new Promise((resolve) => setTimeout(resolve, 20));
  });

async function draw(page: ReactNode) {
  const queries = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  act(() =>
    root.render(
      <QueryClientProvider client={queries}>
        <I18nProvider dictionaries={dictionaries} initial={{ language: 'en', messages: en }}>
          <Router hook={location.hook} searchHook={location.searchHook}>
            {page}
          </Router>
        </I18nProvider>
      </QueryClientProvider>,
    ),
  );
  await settled();
}

const buttons = () => [...document.querySelectorAll('button')];
const button = (text: string) => buttons().find(({ textContent }) => textContent === text);

it('offers of a profession what is ready, not what is idle', async () => {
  const one = { id: 'p', name: 'Diver', icon: '', tagline: '', description: '', claimed: false };
  const stocks = [
    { ...one, stock_idle: 3, stock_ready: 2 },
    { ...one, id: 'q', stock_idle: 3, stock_ready: 0 },
  ];
  answers.set('/me/professions', ok({ list: stocks, total: 2 }));
  await draw(<Professions heading="Professions" />);
  const cards = [...document.querySelectorAll('li')];
  expect(cards.map((card) => card.querySelector('button')?.disabled)).toEqual([false, true]);
  expect(cards[0]?.textContent).toContain('2 free');
  expect(cards[1]?.textContent).toContain(en['professions.noStock']);
});

it('offers another one only once the set-up was given up', async () => {
  answers.set('/me/tasks/{id}', task('failed'));
  await draw(<SetupView instance={INSTANCE} task="t" />);
  expect(button(en['setup.another'])).toBeUndefined();
  expect(document.querySelector('h1')?.textContent).toBe('Reef is being set up');
});

it('gets another one in one request, and goes where it is set up', async () => {
  answers.set('/me/tasks/{id}', task('dead'));
  answers.set('/me/instances/{id}/replace', ok({ instance: { id: 'shoal' }, entry_id: null, task_id: 'u' }));
  await draw(<SetupView instance={INSTANCE} task="t" />);
  expect(document.querySelector('h1')?.textContent).toBe('Reef could not be set up');
  act(() => button(en['setup.another'])?.click());
  await settled();
  expect(posted).toEqual([['/me/instances/{id}/replace', 'reef']]);
  expect(location.history.at(-1)).toBe('/?instance=shoal');
  expect(JSON.parse(sessionStorage.getItem('tidepool.setups') ?? '')).toEqual({ shoal: 'u' });
});

it('says so when there is no other', async () => {
  answers.set('/me/tasks/{id}', task('dead'));
  const refused = { code: '4092', msg: 'no idle instance', data: null };
  answers.set('/me/instances/{id}/replace', { status: 409, body: refused });
  await draw(<SetupView instance={INSTANCE} task="t" />);
  act(() => button(en['setup.another'])?.click());
  await settled();
  expect(document.body.textContent).toContain(en['setup.noOther']);
  expect(location.history).toEqual(['/']);
});
