// Where a person goes after signing in: the place they were at. The place travels as ?next= on the login page and,
// across the identity provider, in sessionStorage, which belongs to this tab alone.
import { readStored, writeStored } from '../storage';

const PENDING = 'tidepool.sso.pending';

/** A path inside the app, or '/' for anything that could lead out of it or back to the login page. */
export function safeNext(next: string | null | undefined): string {
  if (!next?.startsWith('/')) return '/';
  // The browser's own parser decides: it knows that '//host', '/\host' and '/<tab>/host' are other origins.
  const inside = 'http://inside.invalid';
  let url: URL;
  try {
    url = new URL(next, inside);
  } catch {
    return '/';
  }
  if (url.origin !== inside || url.pathname === '/login') return '/';
  return url.pathname + url.search + url.hash;
}

/** The login page's path that leads back to `here` (a path inside the app). */
export function loginPath(here: string): string {
  const next = safeNext(here);
  return next === '/' ? '/login' : `/login?next=${encodeURIComponent(next)}`;
}

/** Called when this tab leaves for the identity provider. */
export function rememberPending(next: string) {
  writeStored(PENDING, safeNext(next), () => sessionStorage);
}

/** The remembered place, once; null when this tab did not start a sign-in. */
export function takePending(): string | null {
  const next = readStored(PENDING, () => sessionStorage);
  writeStored(PENDING, null, () => sessionStorage);
  return next === null ? null : safeNext(next);
}
