// @vitest-environment happy-dom
// The SSO hand-over leaves the URL at once, becomes a session, and leads back to where the person was.
import { beforeEach, describe, expect, it } from 'vitest';
import { arrive } from './arrive';
import { takeHandOver, wasHandedOver } from './fragment';
import { loginPath, rememberPending, safeNext, takePending } from './return-to';
import { createSession } from './session';

const KEY = 'test.token';

/** What the server's callback leaves in the browser it answers. */
function handOver(token: string) {
  document.cookie = `tidepool_test_sso_done=${token.slice(-24)}; path=/`;
}

beforeEach(() => {
  document.cookie = 'tidepool_test_sso_done=; path=/; max-age=0';
  localStorage.clear();
  sessionStorage.clear();
  history.replaceState(null, '', '/');
});

describe('takeHandOver', () => {
  it('takes the token out of the URL and keeps path and query', () => {
    history.replaceState({ kept: true }, '', '/portal/usage?days=7#token=a.b.c');
    expect(takeHandOver(location, history)).toEqual({ token: 'a.b.c' });
    expect(location.href).toMatch(/\/portal\/usage\?days=7$/);
    expect(history.state).toEqual({ kept: true });
  });

  it('takes an error with its spaces', () => {
    history.replaceState(null, '', '/#sso_error=account%20revoked');
    expect(takeHandOver(location, history)).toEqual({ ssoError: 'account revoked' });
    expect(location.hash).toBe('');
  });

  it('leaves other fragments alone', () => {
    history.replaceState(null, '', '/#section');
    expect(takeHandOver(location, history)).toEqual({});
    expect(location.hash).toBe('#section');
  });

  it('removes an empty token without using it', () => {
    history.replaceState(null, '', '/#token=');
    expect(takeHandOver(location, history)).toEqual({});
    expect(location.hash).toBe('');
  });
});

describe('wasHandedOver', () => {
  it.each([
    ['a=b; tidepool_employee_sso_done=xyz', 'xyz', 'http:', true],
    [`tidepool_employee_sso_done=${'s'.repeat(24)}`, `head.body.${'s'.repeat(40)}`, 'http:', true],
    ['tidepool_employee_sso_done=xyz', 'abc', 'http:', false],
    ['tidepool_employee_sso_done=', '', 'http:', false],
    ['', 'abc', 'http:', false],
    ['__Host-tidepool_employee_sso_done=xyz', 'xyz', 'https:', true],
    // What a page of a neighbouring host can set for the whole domain.
    ['tidepool_employee_sso_done=xyz', 'xyz', 'https:', false],
  ])('reads %j for %j over %s as %j', (cookies, token, protocol, expected) => {
    expect(wasHandedOver(token, cookies, protocol)).toBe(expected);
  });
});

describe('arrive', () => {
  it('starts the session and goes to the remembered place below the prefix', () => {
    rememberPending('/profile?tab=1');
    handOver('t1');
    history.replaceState(null, '', '/portal/#token=t1');
    const session = createSession(KEY);
    expect(arrive(session, '/portal')).toEqual({ ssoError: null, ssoStep: null });
    expect(session.state().token).toBe('t1');
    expect(location.pathname + location.search).toBe('/portal/profile?tab=1');
    expect(takePending()).toBeNull();
  });

  it('takes a token that this browser was handed, also when the sign-in began elsewhere', () => {
    handOver('t2');
    history.replaceState(null, '', '/#token=t2');
    const session = createSession(KEY);
    arrive(session, '');
    expect(session.state().token).toBe('t2');
  });

  it('does not take a token out of a link', () => {
    handOver('another');
    history.replaceState(null, '', '/#token=theirs');
    const session = createSession(KEY);
    arrive(session, '');
    expect(session.state().token).toBeNull();
    expect(location.hash).toBe('');
  });

  it('does not let a link replace a running session', () => {
    localStorage.setItem(KEY, 'mine');
    history.replaceState(null, '', '/#token=theirs');
    const session = createSession(KEY);
    arrive(session, '');
    expect(session.state().token).toBe('mine');
    expect(location.hash).toBe('');
  });

  it('hands a second factor that is left to show to the login page, from this browser alone', () => {
    rememberPending('/profile');
    handOver('step');
    history.replaceState(null, '', '/#mfa_token=step&mfa_enrolment=true');
    const session = createSession(KEY);
    expect(arrive(session, '')).toEqual({ ssoError: null, ssoStep: { token: 'step', enrolment: true } });
    expect(session.state().token).toBeNull();
    expect(location.pathname + location.search + location.hash).toBe('/login?next=%2Fprofile');
    history.replaceState(null, '', '/#mfa_token=theirs&mfa_enrolment=false');
    expect(arrive(session, '')).toEqual({ ssoError: null, ssoStep: null });
    expect(location.hash).toBe('');
  });

  it('keeps the place when the provider refuses', () => {
    rememberPending('/profile');
    history.replaceState(null, '', '/#sso_error=no');
    expect(arrive(createSession(KEY), '')).toEqual({ ssoError: 'no', ssoStep: null });
    expect(location.pathname + location.search).toBe('/login?next=%2Fprofile');
  });
});

describe('safeNext', () => {
  it.each(['/', '/profile', '/usage?days=7&x=1#top', '/a//b'])('keeps %s', (path) => {
    expect(safeNext(path)).toBe(path);
  });
  it.each([
    null,
    '',
    'profile',
    '//evil.example/x',
    '/\\evil.example',
    '/\t/evil.example',
    'https://evil.example',
    '/login',
    '/login?next=/x',
  ])('turns %j into the home page', (path) => {
    expect(safeNext(path)).toBe('/');
  });
});

describe('loginPath', () => {
  it('names the place unless it is the home page', () => {
    expect(loginPath('/')).toBe('/login');
    expect(loginPath('/usage?days=7')).toBe('/login?next=%2Fusage%3Fdays%3D7');
  });
});

describe('session', () => {
  it('follows a sign-out in another tab', () => {
    localStorage.setItem(KEY, 't');
    const session = createSession(KEY);
    let calls = 0;
    session.subscribe(() => (calls += 1));
    localStorage.removeItem(KEY);
    window.dispatchEvent(new StorageEvent('storage', { key: KEY, newValue: null }));
    expect(session.state()).toMatchObject({ token: null, endReason: 'elsewhere' });
    expect(calls).toBe(1);
  });

  it('says after a reload, too, that the server ended it, until there is another', () => {
    const session = createSession(KEY);
    session.start('a');
    session.end('ended');
    expect(createSession(KEY).state()).toMatchObject({ token: null, endReason: 'ended' });
    session.start('b');
    session.end('signed-out');
    expect(createSession(KEY).state()).toMatchObject({ token: null, endReason: null });
  });

  it('counts accounts, not tokens', () => {
    const session = createSession(KEY);
    session.start('a');
    const { epoch } = session.state();
    session.renew('b');
    expect(session.state()).toMatchObject({ token: 'b', epoch });
    expect(localStorage.getItem(KEY)).toBe('b');
    session.end('ended');
    expect(session.state()).toMatchObject({ token: null, endReason: 'ended' });
    expect(localStorage.getItem(KEY)).toBeNull();
  });
});
