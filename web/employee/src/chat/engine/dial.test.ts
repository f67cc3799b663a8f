// @vitest-environment happy-dom
// Which way leads to a gateway, and what an HTTP answer tells about a socket that did not open.
import { afterEach, describe, expect, it, vi } from 'vitest';
import { api } from '../../api';
import { diagnose, dialler, dialRelay, directUrl } from './dial';
import { hopOfClose } from './hops';

function ticketAnswers(status: number, data: unknown = null) {
  const body = { code: status === 200 ? '0000' : '4000', data, msg: 'x' };
  const response = new Response(null, { status });
  const answer = status === 200 ? { data: body, response } : { error: body, response };
  vi.spyOn(api, 'POST').mockResolvedValue(answer as never);
}

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
  document.head.innerHTML = '';
});

describe('the direct way', () => {
  it.each([
    ['ws://127.0.0.1:18789', 'http://127.0.0.1:8080/', null],
    ['ws://localhost:18789', 'http://app.test/', null],
    ['ws://[::1]:18789', 'http://app.test/', null],
    ['ws://gateway.test:18789', 'https://app.test/', null],
    ['not a url', 'http://app.test/', null],
    ['ftp://gateway.test', 'http://app.test/', null],
    ['ws://gateway.test:18789', 'http://app.test/', 'ws://gateway.test:18789/'],
    ['https://gateway.test', 'https://app.test/', 'wss://gateway.test/'],
  ])('%s from %s is %s', (gateway, page, url) => {
    expect(directUrl(gateway, page)).toBe(url);
  });
});

describe('the relay', () => {
  it('keeps the public path prefix and the page’s security', async () => {
    ticketAnswers(200, { ticket: 'a b', expires_at: '' });
    const base = document.createElement('base');
    base.href = 'https://work.test/portal/';
    document.head.append(base);
    const { url } = await dialRelay('one/two');
    expect(url).toBe('wss://work.test/portal/api/v1/me/instances/one%2Ftwo/ws?ticket=a+b');
  });

  it.each([
    [401, 'session'],
    [403, 'refused'],
    [404, 'not-yours'],
    [429, 'crowded'],
    [500, 'server'],
    [503, 'server'],
  ])('a ticket refused with %i means %s', async (status, hop) => {
    ticketAnswers(status);
    await expect(dialRelay('one')).rejects.toMatchObject({ hop });
  });
});

describe('the way for an instance', () => {
  const instance = { id: 'one', gateway_url: 'wss://gateway.test', gateway_token: 'secret' };

  it('is straight first, and over the relay once that did not work', async () => {
    ticketAnswers(200, { ticket: 't', expires_at: '' });
    const dial = dialler(instance);
    const straight = await dial();
    expect(straight.url).toBe('wss://gateway.test/');
    expect((await dial()).url).toBe('wss://gateway.test/');
    straight.detour?.();
    expect((await dial()).url).toContain('/me/instances/one/ws?ticket=t');
  });

  it('asks for the approval of its device once', async () => {
    ticketAnswers(404);
    const dial = dialler(instance);
    const first = await dial();
    await expect(first.approve?.('r1')).rejects.toThrow();
    expect((await dial()).approve).toBeUndefined();
  });

  it('is the relay at once where the gateway is out of reach', async () => {
    ticketAnswers(200, { ticket: 't', expires_at: '' });
    const dialled = await dialler({ ...instance, gateway_url: 'ws://127.0.0.1:18789' })();
    expect(dialled.url).toContain('/ws?ticket=t');
    expect(dialled.detour).toBeUndefined();
  });
});

describe('a socket that did not open', () => {
  it.each([
    [401, 'no-upgrade'],
    [400, 'no-upgrade'],
    [426, 'no-upgrade'],
    [429, 'crowded'],
    [502, 'server'],
    [503, 'server'],
  ])('where HTTP answers %i: %s', async (status, hop) => {
    const asked: string[] = [];
    vi.stubGlobal('fetch', (url: URL) => {
      asked.push(String(url));
      return Promise.resolve(new Response('{}', { status }));
    });
    expect(await diagnose('wss://work.test/x/ws?ticket=secret')).toBe(hop);
    expect(asked).toEqual(['https://work.test/x/ws']);
  });
});

it.each([
  [1000, 'the browser is silent', 'silent'],
  [1008, 'origin not allowed', 'origin'],
  [1008, 'the session ended', 'session'],
  [1008, 'the instance is not yours', 'not-yours'],
  [1008, 'token mismatch', 'refused'],
  [1009, 'a frame is too long', 'too-long'],
  [1011, 'the connection to the instance was lost', 'instance'],
  [1012, 'the platform is restarting', 'restarting'],
  [1013, 'the instance is starting', 'starting'],
  [1006, '', 'server'],
])('an end with %i "%s" means %s', (code, reason, hop) => {
  expect(hopOfClose(code, reason)).toBe(hop);
});
