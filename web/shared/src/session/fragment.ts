// What the SSO callback hands over in the URL's fragment. It is taken out of the address bar and the history
// entry before anything else runs, so that the token is neither seen, bookmarked nor sent along.

export interface HandOver {
  token?: string;
  ssoError?: string;
}

export function takeHandOver(location: Location, history: History): HandOver {
  const fields = new URLSearchParams(location.hash.replace(/^#/, ''));
  const token = fields.get('token') ?? undefined;
  const ssoError = fields.get('sso_error') ?? undefined;
  if (token === undefined && ssoError === undefined) return {};
  // An absolute path: a bare '?…' would be resolved against <base>, not against the page.
  history.replaceState(history.state, '', location.pathname + location.search);
  return { ...(token && { token }), ...(ssoError && { ssoError }) };
}
