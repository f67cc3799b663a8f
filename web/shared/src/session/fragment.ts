// What the SSO callback hands over in the URL's fragment. It is taken out of the address bar and the history
// entry before anything else runs, so that the token is neither seen, bookmarked nor sent along.

export interface HandOver {
  token?: string;
  /** A second factor is left to show. */
  mfaToken?: string;
  mfaEnrolment?: boolean;
  ssoError?: string;
}

export function takeHandOver(location: Location, history: History): HandOver {
  const fields = new URLSearchParams(location.hash.replace(/^#/, ''));
  const token = fields.get('token') ?? undefined;
  const mfaToken = fields.get('mfa_token') ?? undefined;
  const ssoError = fields.get('sso_error') ?? undefined;
  if (token === undefined && mfaToken === undefined && ssoError === undefined) return {};
  // An absolute path: a bare '?…' would be resolved against <base>, not against the page.
  history.replaceState(history.state, '', location.pathname + location.search);
  return {
    ...(token && { token }),
    ...(mfaToken && { mfaToken, mfaEnrolment: fields.get('mfa_enrolment') === 'true' }),
    ...(ssoError && { ssoError }),
  };
}

/**
 * Whether the server handed this token to this very browser: the callback leaves the token's end in a cookie that
 * lives for a minute. A link with somebody else's token comes without one. With TLS its name has a prefix that browsers take from
 * the server itself alone: a page of a neighbouring host, such as an assistant's window, cannot plant it.
 */
export function wasHandedOver(token: string, cookies: string, protocol: string): boolean {
  const isOurs = (name: string) =>
    name.endsWith('_sso_done') && (protocol !== 'https:' || name.startsWith('__Host-'));
  return cookies
    .split(';')
    .map((pair) => pair.trim().split('='))
    .some(([name, value]) => isOurs(name ?? '') && value !== '' && value === token.slice(-24));
}
