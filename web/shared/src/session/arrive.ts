// The very first step of both apps: take an SSO hand-over out of the URL and turn it into a session.
import type { LoginStep } from '../account/second-factor/api';
import { takeHandOver, wasHandedOver } from './fragment';
import { takePending } from './return-to';
import type { Session } from './session';

export interface Arrival {
  /** The identity provider's or the server's refusal, for the login page. */
  ssoError: string | null;
  /** The second factor that is left to show, for the login page. */
  ssoStep: LoginStep | null;
}

export function arrive(session: Session, base: string): Arrival {
  const { token, mfaToken, mfaEnrolment, ssoError } = takeHandOver(window.location, window.history);
  if (token === undefined && mfaToken === undefined && ssoError === undefined)
    return { ssoError: null, ssoStep: null };

  const pending = takePending();
  // A link with somebody else's token would have us work in their account: only what this browser was handed counts.
  const isOurs = (handed: string) => wasHandedOver(handed, document.cookie, location.protocol);
  if (token !== undefined && isOurs(token)) session.start(token);
  const ssoStep =
    mfaToken !== undefined && isOurs(mfaToken) ? { token: mfaToken, enrolment: mfaEnrolment === true } : null;
  if (pending !== null) {
    const place = token === undefined ? `/login?next=${encodeURIComponent(pending)}` : pending;
    window.history.replaceState(window.history.state, '', base + place);
  }
  return { ssoError: ssoError ?? null, ssoStep };
}
