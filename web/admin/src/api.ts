// The administration API: the session, the typed client, and the account part that the shared pages use.
import type { paths } from '@tidepool/shared/api/admin.gen';
import { apiClient, bearerOf } from '@tidepool/shared/api/client';
import { unwrap } from '@tidepool/shared/api/envelope';
import type { AccountApi } from '@tidepool/shared/app';
import { createSession } from '@tidepool/shared/session/session';

export const session = createSession('tidepool.admin.token');
export const api = apiClient<paths>(session);

export const account: AccountApi = {
  options: () => unwrap(api.GET('/auth/options')),
  login: (email, password) => unwrap(api.POST('/auth/login', { body: { email, password } })),
  secondFactor: async () => (await import('./second-factor')).secondFactor,
  logout: (token) => unwrap(api.POST('/auth/logout', { headers: { authorization: bearerOf(token) } })),
  changePassword: async (old, replacement) =>
    (await unwrap(api.POST('/auth/password', { body: { old, new: replacement } }))).token,
};
