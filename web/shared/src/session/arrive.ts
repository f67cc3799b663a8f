// The very first step of both apps: take an SSO hand-over out of the URL and turn it into a session.
import { takeHandOver, wasHandedOver } from './fragment';
import { takePending } from './return-to';
import type { Session } from './session';

export interface Arrival {
  /** The identity provider's or the server's refusal, for the login page. */
  ssoError: string | null;
}

export function arrive(session: Session, base: string): Arrival {
  const { token, ssoError } = takeHandOver(window.location, window.history);
  if (token === undefined && ssoError === undefined) return { ssoError: null };

  const pending = takePending();
  // A link with somebody else's token would have us work in their account: only what this browser was handed counts.
  if (token !== undefined && wasHandedOver(token, document.cookie, location.protocol)) session.start(token);
  if (pending !== null) {
    const place = ssoError === undefined ? pending : `/login?next=${encodeURIComponent(pending)}`;
    window.history.replaceState(window.history.state, '', base + place);
  }
  return { ssoError: ssoError ?? null };
}
