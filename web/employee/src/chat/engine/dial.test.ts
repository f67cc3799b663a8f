// Which way leads to a gateway, and what an HTTP answer tells about a socket that did not open.
import { afterEach, describe, expect, it, vi } from 'vitest';
import { pending } from '../../pending-api';
import { diagnose, dialRelay, directUrl } from './dial';
import { hopOfClose } from './socket-link';

function ticketAnswers(status: number, data: unknown = null) {
  const body = { code: status === 200 ? '0000' : '4000', data, msg: 'x' };
  const response = new Response(null, { status });
  const answer = status === 200 ? { data: body, response } : { error: body, response };
  vi.spyOn(pending, 'POST').mockResolvedValue(answer);
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
    const { url } = await dialRelay('one/two', true);
    expect(url).toBe('wss://work.test/portal/api/v1/me/instances/one%2Ftwo/ws?ticket=a+b');
  });

  it.each([
    [404, 'no-relay'],
    [403, 'refused'],
    [502, 'instance'],
    [503, 'instance'],
    [500, 'server'],
  ])('a ticket refused with %i means %s', async (status, hop) => {
    ticketAnswers(status);
    await expect(dialRelay('one', true)).rejects.toMatchObject({ hop });
  });
});

describe('a socket that did not open', () => {
  it.each([
    [403, 'origin'],
    [502, 'instance'],
    [504, 'instance'],
    [400, 'no-upgrade'],
    [426, 'no-upgrade'],
    [200, 'no-upgrade'],
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
  [1008, 'origin not allowed', 'origin'],
  [1008, 'token mismatch', 'refused'],
  [1012, 'service restart', 'starting'],
  [1013, 'gateway starting', 'starting'],
  [1011, '', 'instance'],
  [1006, '', 'server'],
])('an end with %i "%s" means %s', (code, reason, hop) => {
  expect(hopOfClose(code, reason)).toBe(hop);
});
