// The routes of the second factor, for the shared pages; fetched with them.
import type { SecondFactorApi } from '@tidepool/shared/account/second-factor/api';
import { unwrap } from '@tidepool/shared/api/envelope';
import { api } from './api';

export const secondFactor: SecondFactorApi = {
  showCode: async (step, code) =>
    (await unwrap(api.POST('/auth/mfa', { body: { mfa_token: step, code } }))).token,
  beginInLogin: (step) => unwrap(api.POST('/auth/mfa/enrolment', { body: { mfa_token: step } })),
  confirmInLogin: (step, code) =>
    unwrap(api.POST('/auth/mfa/enrolment/confirm', { body: { mfa_token: step, code } })),
  begin: (proof) => unwrap(api.POST('/auth/me/mfa', { body: proof })),
  confirm: (code) => unwrap(api.POST('/auth/me/mfa/confirm', { body: { code } })),
  newRecoveryCodes: async (proof) =>
    (await unwrap(api.POST('/auth/me/mfa/recovery-codes', { body: proof }))).recovery_codes,
  disable: (proof) => unwrap(api.POST('/auth/me/mfa/disable', { body: proof })),
  acknowledgeReset: () => unwrap(api.POST('/auth/me/password-reset/acknowledge')),
};
