// How the gateway's sessions are shown as conversations.
import { expect, it } from 'vitest';
import { conversationsOf, MAIN_SESSION } from './openclaw';

it('knows the first conversation as long as nobody has named it', () => {
  const sessions = [
    { key: MAIN_SESSION, updatedAt: 2 },
    { key: 'agent:main:dashboard:9f0c1d2e-1', label: 'Tides', updatedAt: 1 },
  ];
  expect(conversationsOf({ sessions })).toMatchObject([
    { key: MAIN_SESSION, main: true },
    { title: 'Tides', updatedAt: 1 },
  ]);
  const [named] = conversationsOf({ sessions: [{ key: MAIN_SESSION, label: 'Harbour', updatedAt: 2 }] });
  expect(named).toEqual({ key: MAIN_SESSION, title: 'Harbour', updatedAt: 2 });
});
