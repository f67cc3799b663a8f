// @vitest-environment happy-dom
// An address that names a conversation opens it, once.
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { I18nProvider } from '@tidepool/shared/i18n/i18n';
import { act } from 'react';
import { createRoot } from 'react-dom/client';
import { expect, it, vi } from 'vitest';
import { Router } from 'wouter';
import { memoryLocation } from 'wouter/memory-location';
import { INSTANCES, SUMMARY } from '../instances-query';
import { dictionaries } from '../messages';
import { en } from '../messages/en';
import ChatPage from '../pages/chat';
import { PROFILE } from '../profile-query';

const engine = vi.hoisted(() => ({ openConversation: vi.fn() }));

vi.mock('../api', () => ({ api: {} }));
vi.mock('./use-chat', () => ({ useChat: () => ({ engine }) }));
vi.mock('./view/column', () => ({ Column: () => null }));
vi.mock('./view/pane', () => ({ Pane: () => null }));

it('opens the conversation that the address names, beside a column of 280 px', () => {
  vi.stubGlobal('IS_REACT_ACT_ENVIRONMENT', true);
  const client = new QueryClient({ defaultOptions: { queries: { staleTime: Infinity } } });
  client.setQueryData(INSTANCES, [{ id: 'shoal' }, { id: 'reef', name: 'Reef' }]);
  client.setQueryData(SUMMARY, {});
  client.setQueryData(PROFILE, { id: 'ada' });
  const path = '/?instance=reef&conversation=agent%3Amain%3Atides';
  const location = memoryLocation({ path, record: true });
  const root = createRoot(document.body.appendChild(document.createElement('main')));
  act(() =>
    root.render(
      <QueryClientProvider client={client}>
        <I18nProvider dictionaries={dictionaries} initial={{ language: 'en', messages: en }}>
          <Router hook={location.hook} searchHook={location.searchHook}>
            <ChatPage />
          </Router>
        </I18nProvider>
      </QueryClientProvider>,
    ),
  );
  expect(engine.openConversation.mock.calls).toEqual([['agent:main:tides']]);
  expect(location.history.at(-1)).toBe('/?instance=reef');
  // 280 px with the line at its edge: the column itself has no width of its own, to which the line would be added.
  expect(document.querySelector('aside')?.className.split(' ')).toContain('w-70');
  act(() => root.unmount());
  vi.unstubAllGlobals();
});
