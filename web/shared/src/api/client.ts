// The typed HTTP client of one API: the bearer token goes out with each request, and an answer that says the token has
// ended ends the session, wherever in the app it was noticed.
import createClient, { type Client, type Middleware } from 'openapi-fetch';
import type { Session } from '../session/session';

const TOKEN_ENDED = '4010';

export function apiClient<Paths extends object>(session: Session): Client<Paths> {
  const client = createClient<Paths>({ baseUrl: new URL('api/v1', document.baseURI).href });
  client.use(bearer(session));
  return client;
}

/** The header's value, for the one request that must name its token itself: signing out. */
export function bearerOf(token: string): string {
  return `Bearer ${token}`;
}

function bearer(session: Session): Middleware {
  return {
    onRequest({ request }) {
      const { token } = session.state();
      const own = request.headers.has('authorization');
      if (token !== null && !own) request.headers.set('authorization', bearerOf(token));
      return request;
    },
    async onResponse({ request, response }) {
      if (response.status !== 401) return;
      const body = (await response
        .clone()
        .json()
        .catch(() => null)) as { code?: unknown } | null;
      const { token } = session.state();
      // A late answer to an older token says nothing about the one in use now.
      const current = token !== null && request.headers.get('authorization') === bearerOf(token);
      if (body?.code === TOKEN_ENDED && current) session.end('ended');
    },
  };
}
