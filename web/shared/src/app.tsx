// What both apps are made of: the session, the account part of the API, the query cache, the language, and the router
// below the public path prefix. An app hands over its own pieces and its routes.
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { createContext, StrictMode, use, useSyncExternalStore, type ReactNode } from 'react';
import { createRoot } from 'react-dom/client';
import { Router } from 'wouter';
import type { LoginStep, SecondFactorApi } from './account/second-factor/api';
import { optionsQuery } from './account/use-options';
import { ApiError } from './api/envelope';
import { I18nProvider, loadLanguage, type Dictionaries } from './i18n/i18n';
import { LOCALES } from './i18n/language';
import { arrive } from './session/arrive';
import type { Session, SessionState } from './session/session';

/** The part of an API that the shared account pages use; each app maps it to its own routes. */
export interface AccountApi {
  options: () => Promise<{ sso: boolean; version: string }>;
  /** Answers the token, or what is left to show for one. */
  login: (email: string, password: string) => Promise<LoginAnswer>;
  /** Fetched by the pages that need it. */
  secondFactor: () => Promise<SecondFactorApi>;
  /** Ends this token, which the session has forgotten by then. */
  logout: (token: string) => Promise<unknown>;
  /** Answers the fresh token that replaces the ended one. */
  changePassword: (old: string, replacement: string) => Promise<string>;
}

/** As the server answers a login. */
export type LoginAnswer = { token: string } | { mfa_token: string; mfa_enrolment: boolean };

interface AppParts {
  session: Session;
  account: AccountApi;
  dictionaries: Dictionaries;
  /** Called once the session is known. */
  routes: () => ReactNode;
}

interface AppValue {
  session: Session;
  account: AccountApi;
  ssoError: string | null;
  /** What single sign-on has left to show. */
  ssoStep: LoginStep | null;
}

/** Queries under this key belong to nobody and survive a change of account. */
export const PUBLIC = 'public';

const Context = createContext<AppValue | null>(null);

export function useApp(): AppValue {
  const value = use(Context);
  if (value === null) throw new Error('useApp outside the app');
  return value;
}

export function useSession(): SessionState {
  const { session } = useApp();
  return useSyncExternalStore(session.subscribe, session.state);
}

function queryClient(session: Session): QueryClient {
  const client = new QueryClient({
    defaultOptions: {
      queries: {
        staleTime: 15_000,
        // Being offline is shown as the failure it is, not as endless loading.
        networkMode: 'always',
        retry: (failures, error) => failures < 2 && error instanceof ApiError && error.passing,
      },
      mutations: { networkMode: 'always' },
    },
  });
  // Nothing of one account may be seen by the next one.
  let { epoch } = session.state();
  session.subscribe(() => {
    const state = session.state();
    if (state.epoch === epoch) return;
    epoch = state.epoch;
    const filter = { predicate: ({ queryKey }: { queryKey: readonly unknown[] }) => queryKey[0] !== PUBLIC };
    if (state.token === null) client.removeQueries(filter);
    else void client.resetQueries(filter);
  });
  return client;
}

export async function startApp({ session, account, dictionaries, routes }: AppParts) {
  const base = new URL(document.baseURI).pathname.replace(/\/$/, '');
  const { ssoError, ssoStep } = arrive(session, base);
  const content = routes();
  const client = queryClient(session);
  // Every page shows something of it; asked for now, it arrives together with the page's code.
  client.query(optionsQuery(account)).catch(() => null);
  const loaded = await loadLanguage(dictionaries);
  document.documentElement.lang = LOCALES[loaded.language];
  const root = document.getElementById('root');
  if (root === null) throw new Error('the page has no #root');
  createRoot(root).render(
    <StrictMode>
      <Context value={{ session, account, ssoError, ssoStep }}>
        <QueryClientProvider client={client}>
          <I18nProvider dictionaries={dictionaries} initial={loaded}>
            <Router base={base}>{content}</Router>
          </I18nProvider>
        </QueryClientProvider>
      </Context>
    </StrictMode>,
  );
}
