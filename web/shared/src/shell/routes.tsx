// Turns an app's list of pages into lazily loaded routes: the login page stands alone, all others need a session and
// stand inside the app's frame. The frame and the page at the current address are fetched side by side, not in turn.
import { lazy, Suspense, type ComponentType, type ReactNode } from 'react';
import { Route, Switch } from 'wouter';
import { RequireSession } from '../account/guard';
import { ErrorBoundary } from '../ui/error-boundary';
import { PageFailure } from './page-failure';

type Load<Props = object> = () => Promise<{ default: ComponentType<Props> }>;

interface AppRoutes {
  login: Load;
  frame: Load<{ children: ReactNode }>;
  /** By path; a page below a section has its section's first segment. */
  pages: Readonly<Record<string, Load>>;
}

const NotFound = lazy(() => import('./not-found'));

export function appRoutes({ login, frame, pages }: AppRoutes): ReactNode {
  const Login = lazy(login);
  const Frame = lazy(frame);
  const routes = Object.entries(pages).map(([path, load]) => ({ path, Page: lazy(load) }));
  prefetch(frame, pages);
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

function prefetch(frame: Load<{ children: ReactNode }>, pages: AppRoutes['pages']) {
  const base = new URL(document.baseURI).pathname;
  const [segment = ''] = window.location.pathname.slice(base.length).split('/');
  const page = pages[`/${segment}`];
  if (page === undefined) return;
  // Failures surface when the same import is used for drawing.
  void Promise.allSettled([frame(), page()]);
}
