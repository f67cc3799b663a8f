// @vitest-environment happy-dom
// How the socket engine finds its way to the gateway: refusals, a start to wait for, the relay, the approval of a device.
import { describe, expect, it } from 'vitest';
import { FakeGateway, Refused } from './fake-gateway';
import {
  engine,
  gateway,
  live,
  prompts,
  SESSION,
  unfinished,
  until,
  unusable,
  useEngine,
} from './socket-bench';
import { HopError } from './socket-link';
import type { Hop } from './types';

let straightUrl = '';

describe('the way to the gateway', () => {
  it.each<[string, [number, string], Hop]>([
    ['the instance is down', [1011, 'cannot reach the instance'], 'instance'],
    ['the origin is refused', [1008, 'origin not allowed'], 'origin'],
  ])('gives up when %s, and says so', async (_name, refusal, hop) => {
    gateway.refuse = refusal;
    engine.start();
    await until(() => expect(unusable).toEqual([hop]));
  });

  it('waits while the gateway starts', async () => {
    gateway.refuse = [1013, 'gateway starting'];
    engine.start();
    await until(() => expect(engine.state().connection).toMatchObject({ state: 'waiting', hop: 'starting' }));
    gateway.refuse = null;
    await live();
    expect(unusable).toEqual([]);
  });

  it('falls back where a proxy passes no upgrade on, and loses nothing', async () => {
    useEngine(() => Promise.resolve({ url: 'ws://127.0.0.1:1/' }));
    engine.start();
    engine.send('not lost');
    await until(() => expect(unusable).toEqual(['no-upgrade']));
    expect(unfinished.handOver(SESSION)).toMatchObject([{ message: { text: 'not lost' }, tried: false }]);
    expect(prompts).toEqual([]);
  });

  it('is read only for an instance that is not one’s own, and looks for no other way', async () => {
    useEngine(() => Promise.reject(new HopError('not-yours')));
    engine.start();
    await until(() => expect(engine.state().connection).toEqual({ state: 'readonly', hop: 'not-yours' }));
    expect(unusable).toEqual([]);
  });

  it.each<[string, () => void]>([
    ['the gateway wants to be paired', () => gateway.answers.delete('connect')],
    ['the gateway closes', () => (gateway.refuse = [1008, 'origin not allowed'])],
    ['nothing listens', () => (straightUrl = 'ws://127.0.0.1:1/')],
    ['the browser forbids it', () => (straightUrl = 'no address')],
  ])('takes the relay at once when the straight way fails: %s', async (_name, arrange) => {
    const relay = await FakeGateway.start();
    gateway.challenge = true;
    straightUrl = gateway.url;
    arrange();
    let straight = true;
    const detour = () => {
      straight = false;
    };
    useEngine(() =>
      Promise.resolve(
        straight
          ? { url: straightUrl, introduce: () => Promise.resolve({ device: {} }), detour }
          : { url: relay.url },
      ),
    );
    const states: string[] = [];
    engine.subscribe(() => states.push(engine.state().connection.state));
    engine.start();
    await live();
    expect(relay.requests.some(({ method }) => method === 'chat.history')).toBe(true);
    expect(states).not.toContain('waiting');
    expect(unusable).toEqual([]);
    engine.destroy();
    await relay.stop();
  });

  it.each([
    ['has its device approved and comes again the same way', true],
    ['takes the relay where nobody approves it', false],
  ])('%s', async (_name, approves) => {
    const relay = await FakeGateway.start();
    const asked: string[] = [];
    let approved = false;
    gateway.challenge = true;
    gateway.answers.set('connect', (_request, socket) => {
      if (approved) return { type: 'hello-ok', protocol: 4 };
      setTimeout(() => socket.close(1008, 'pairing required'), 5);
      return new Refused({
        code: 'NOT_PAIRED',
        message: 'pairing required',
        details: { code: 'PAIRING_REQUIRED', requestId: 'r1' },
      });
    });
    const approve = (request: string) => {
      asked.push(request);
      approved = approves;
      return approves ? Promise.resolve() : Promise.reject(new Error('refused'));
    };
    let straight = true;
    const detour = () => {
      straight = false;
    };
    const introduce = () => Promise.resolve({ device: {} });
    useEngine(() =>
      Promise.resolve(straight ? { url: gateway.url, introduce, approve, detour } : { url: relay.url }),
    );
    engine.start();
    await live();
    expect(asked).toEqual(['r1']);
    const used = approves ? gateway : relay;
    expect(used.requests.some(({ method }) => method === 'chat.history')).toBe(true);
    expect(straight).toBe(approves);
    engine.destroy();
    await relay.stop();
  });
});
