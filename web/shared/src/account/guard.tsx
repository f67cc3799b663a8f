// Lets only signed-in people through; others go to the login page and come back to the same place afterwards.
import type { ReactNode } from 'react';
import { Redirect, useLocation, useSearch } from 'wouter';
import { useSession } from '../app';
import { loginPath } from '../session/return-to';

export function RequireSession({ children }: { children: ReactNode }) {
  const { token, endReason } = useSession();
  const [location] = useLocation();
  const search = useSearch();
  if (token !== null) return children;
  // Who signs out on purpose starts afresh.
  const here = endReason === 'signed-out' ? '/' : location + (search && `?${search}`);
  return <Redirect to={loginPath(here)} replace />;
}
