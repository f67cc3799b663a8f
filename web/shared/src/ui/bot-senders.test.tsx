// @vitest-environment happy-dom
// Who asks to write to a bot is shown with the code, and approved, refused or added by number; who is allowed can be removed.
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { act } from 'react';
import { createRoot, type Root } from 'react-dom/client';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { ApiError } from '../api/envelope';
import { en } from '../i18n/en';
import { I18nProvider } from '../i18n/i18n';
import { zh } from '../i18n/zh';
import { BotSenders, type PairingRequest, type Sender, type SenderActions } from './bot-senders';

const dictionaries = { en, load: { zh: () => Promise.resolve(zh) } };
const AT = '2026-11-15T10:00:00Z';
const ADA: PairingRequest = {
  sender_id: '4711',
  name: 'Ada L',
  username: 'ada_l',
  code: 'AWU4QEG7',
  created_at: AT,
};
const STRANGER: PairingRequest = {
  sender_id: '4712',
  name: '',
  username: '',
  code: 'BK9HRQLQ',
  created_at: AT,
};

let root: Root;
let calls: unknown[];
let done: number;

beforeEach(() => {
  vi.stubGlobal('IS_REACT_ACT_ENVIRONMENT', true);
  calls = [];
  done = 0;
  document.body.innerHTML = '<main></main>';
  root = createRoot(document.body.firstElementChild ?? document.body);
});

afterEach(() => {
  act(() => root.unmount());
  vi.unstubAllGlobals();
});

async function settle() {
  for (let turn = 0; turn < 5; turn += 1) await act(() => new Promise((next) => setTimeout(next)));
}

async function draw(
  senders: Sender[],
  requests: PairingRequest[] | Error,
  initial: Parameters<typeof I18nProvider>[0]['initial'] = { language: 'en', messages: en },
) {
  const called = (name: string) => (argument: unknown) => {
    calls.push([name, argument]);
    return Promise.resolve();
  };
  const actions: SenderActions = {
    requests: () => (requests instanceof Error ? Promise.reject(requests) : Promise.resolve(requests)),
    allow: called('allow'),
    refuse: called('refuse'),
    remove: called('remove'),
  };
  act(() =>
    root.render(
      <QueryClientProvider client={new QueryClient()}>
        <I18nProvider dictionaries={dictionaries} initial={initial}>
          <BotSenders queryKey={['q']} senders={senders} actions={actions} onDone={() => (done += 1)} />
        </I18nProvider>
      </QueryClientProvider>,
    ),
  );
  await settle();
}

async function press(label: string) {
  const named = (one: HTMLButtonElement) => (one.getAttribute('aria-label') ?? one.textContent) === label;
  const button = [...document.querySelectorAll('button')].findLast(named);
  if (button === undefined) throw new Error(`there is no button ${label}`);
  act(() => button.click());
  await settle();
}

async function add(value: string) {
  const input = document.querySelector<HTMLInputElement>('input[name="sender_id"]');
  if (input === null) throw new Error('there is no field');
  input.value = value;
  act(() => void input.form?.dispatchEvent(new Event('submit', { bubbles: true, cancelable: true })));
  await settle();
}

const text = () => document.body.textContent;

it('shows who asks with the code, and approves or refuses', async () => {
  await draw([], [ADA, STRANGER]);
  for (const part of [
    'Ada L',
    '@ada_l',
    '4711',
    'AWU4QEG7',
    'BK9HRQLQ',
    en['senders.unnamed'],
    en['senders.nobody'],
  ])
    expect(text()).toContain(part);
  await press('Approve AWU4QEG7');
  await press('Refuse BK9HRQLQ');
  expect(calls).toEqual([
    ['allow', { code: 'AWU4QEG7' }],
    ['refuse', '4712'],
  ]);
  expect(done).toBe(2);
});

it('lists who is allowed and removes one after a question', async () => {
  await draw(
    [
      { sender_id: '4711', name: 'Ada L', created_at: AT },
      { sender_id: '99', name: '', created_at: AT },
    ],
    [STRANGER],
  );
  expect(text()).toContain(en['senders.closed']);
  expect(
    [...document.querySelectorAll('button')].some((one) => one.textContent === en['senders.refuse']),
  ).toBe(false);
  await press('Remove Ada L');
  expect(calls).toEqual([]);
  expect(text()).toContain(en['senders.removeText']);
  act(() =>
    [...document.querySelectorAll('form')]
      .find((one) => !one.querySelector('[name=sender_id]'))
      ?.requestSubmit(),
  );
  await settle();
  expect(calls).toEqual([['remove', '4711']]);
});

it('takes a number by hand, also when requests cannot be read', async () => {
  await draw(
    [],
    new ApiError({ status: 502, code: '5020', msg: 'the pairing requests of the instance cannot be read' }),
  );
  expect(text()).toContain('the pairing requests of the instance cannot be read');
  await add('@ada');
  expect(text()).toContain(en['senders.notANumber']);
  expect(calls).toEqual([]);
  await add(' 4711 ');
  expect(calls).toEqual([['allow', { sender_id: '4711' }]]);
});

it('speaks Chinese', async () => {
  await draw([], [ADA], { language: 'zh', messages: zh });
  expect(text()).toContain(zh['senders.requests']);
  await press(`${zh['senders.approve']} AWU4QEG7`);
  expect(calls).toEqual([['allow', { code: 'AWU4QEG7' }]]);
});
