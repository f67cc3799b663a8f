// @vitest-environment happy-dom
// The client sends the token along and notices when the server no longer takes it.
import { afterEach, expect, it, vi } from 'vitest';
import { createSession } from '../session/session';
import { apiClient, bearerOf } from './client';
import { ApiError, unwrap } from './envelope';

interface Paths {
  '/x': {
    get: {
      responses: { 200: { content: { 'application/json': { code: string; data: number; msg: string } } } };
    };
  };
}

function server(status: number, code: string, during: () => void = () => undefined) {
  const seen: (string | null)[] = [];
  vi.stubGlobal('fetch', (request: Request) => {
    seen.push(request.headers.get('authorization'));
    during();
    return Promise.resolve(Response.json({ code, data: 1, msg: 'm' }, { status }));
  });
  return seen;
}

afterEach(() => {
  vi.unstubAllGlobals();
  localStorage.clear();
});

it('sends the current token, or the one a request names itself', async () => {
  const seen = server(200, '0000');
  const session = createSession('k');
  session.start('t');
  const api = apiClient<Paths>(session);
  expect(await unwrap(api.GET('/x'))).toBe(1);
  await unwrap(api.GET('/x', { headers: { authorization: bearerOf('other') } }));
  expect(seen).toEqual(['Bearer t', 'Bearer other']);
});

it('ends the session on 4010', async () => {
  server(401, '4010');
  const session = createSession('k');
  session.start('t');
  await expect(unwrap(apiClient<Paths>(session).GET('/x'))).rejects.toBeInstanceOf(ApiError);
  expect(session.state()).toMatchObject({ token: null, endReason: 'ended' });
});

it('keeps the session on a wrong password', async () => {
  server(401, '4011');
  const session = createSession('k');
  session.start('t');
  await expect(unwrap(apiClient<Paths>(session).GET('/x'))).rejects.toMatchObject({ code: '4011' });
  expect(session.state().token).toBe('t');
});

it('keeps a token that was renewed while the refused request was under way', async () => {
  const session = createSession('k');
  session.start('old');
  server(401, '4010', () => session.renew('new'));
  await expect(unwrap(apiClient<Paths>(session).GET('/x'))).rejects.toMatchObject({ code: '4010' });
  expect(session.state().token).toBe('new');
});
