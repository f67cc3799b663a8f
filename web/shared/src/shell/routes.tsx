// Turns an app's list of pages into lazily loaded routes: the login page stands alone, all others need a session and
// stand inside the app's frame. What the current address will need is fetched at once, side by side, not in turn.
import { Suspense, type ReactNode } from 'react';
import { Route, Switch } from 'wouter';
import { RequireSession } from '../account/guard';
import { lazyPart, type Load } from '../lazy-part';
import type { Session } from '../session/session';
import { ErrorBoundary } from '../ui/error-boundary';
import { AwayPage } from './away';
import { PageFailure } from './page-failure';

interface AppRoutes {
  session: Session;
  login: Load;
  frame: Load<{ children: ReactNode }>;
  /** By path; a page below a section has its section's first segment. */
  pages: Readonly<Record<string, Load>>;
}

const NotFound = lazyPart(() => import('./not-found'), AwayPage);

export function appRoutes(app: AppRoutes): ReactNode {
  const { login, frame, pages } = app;
  const Login = lazyPart(login, AwayPage);
  const Frame = lazyPart(frame, AwayPage);
  const routes = Object.entries(pages).map(([path, load]) => ({ path, Page: lazyPart(load, AwayPage) }));
  prefetch(app);
  return (
    <ErrorBoundary fallback={() => <PageFailure />}>
      <Suspense fallback={null}>
        <Switch>
          <Route path="/login">
            <Login />
          </Route>
          <Route>
            <RequireSession>
              <Frame>
                <Switch>
                  {routes.map(({ path, Page }) => (
                    <Route key={path} path={path}>
                      <Page />
                    </Route>
                  ))}
                  <Route>
                    <NotFound />
                  </Route>
                </Switch>
              </Frame>
            </RequireSession>
          </Route>
        </Switch>
      </Suspense>
    </ErrorBoundary>
  );
}

function prefetch({ session, login, frame, pages }: AppRoutes) {
  const base = new URL(document.baseURI).pathname;
  const [segment = ''] = window.location.pathname.slice(base.length).split('/');
  const page = pages[`/${segment}`];
  // A failure surfaces when the same import is used for drawing.
  const early = (load: () => Promise<unknown>) => void load().catch(() => null);
  for (const load of session.state().token === null ? [login] : [frame, page]) if (load) early(load);
}
