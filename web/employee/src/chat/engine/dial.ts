// The ways to an instance's gateway: through the platform's relay with a one-time ticket, or straight to it where the
// browser can reach it.
import { ApiError, unwrap } from '@tidepool/shared/api/envelope';
import { api } from '../../api';
import { hopOfTicket } from './hops';
import { HopError, type Dialled } from './socket-link';
import type { Hop } from './types';

/** Few browsers reach a gateway straight: the others need no keys. */
const device = () => import('./device');

export async function dialRelay(instance: string): Promise<Dialled> {
  try {
    const params = { path: { id: instance } };
    const { ticket } = await unwrap(api.POST('/me/instances/{id}/ws-ticket', { params }));
    const url = new URL(`api/v1/me/instances/${encodeURIComponent(instance)}/ws`, document.baseURI);
    url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
    url.searchParams.set('ticket', ticket);
    return { url: url.href };
  } catch (error) {
    throw new HopError(error instanceof ApiError ? hopOfTicket(error.status) : 'server');
  }
}

/**
 * A socket that does not open says nothing of why. Asked by plain HTTP and without a ticket, the server answers 401: then
 * HTTP passes where the upgrade does not. What goes wrong behind the upgrade is told by the socket's end.
 */
export async function diagnose(url: string): Promise<Hop> {
  const plain = new URL(url);
  plain.protocol = plain.protocol === 'wss:' ? 'https:' : 'http:';
  // The ticket is for one use; the question must not spend another one.
  plain.searchParams.delete('ticket');
  const { status } = await fetch(plain, { headers: { accept: 'application/json' } });
  if (status === 429) return 'crowded';
  return status >= 500 ? 'server' : 'no-upgrade';
}

/** A gateway on loopback is meant for its own machine, and a secure page may not open an insecure socket. */
export function directUrl(gatewayUrl: string, page: string = window.location.href): string | null {
  if (!URL.canParse(gatewayUrl)) return null;
  const url = new URL(gatewayUrl);
  if (url.protocol === 'http:') url.protocol = 'ws:';
  if (url.protocol === 'https:') url.protocol = 'wss:';
  if (url.protocol !== 'ws:' && url.protocol !== 'wss:') return null;
  if (/^(localhost|127\.|\[?::1)/.test(url.hostname)) return null;
  return page.startsWith('https:') && url.protocol !== 'wss:' ? null : url.href;
}

/** A gateway takes a browser from elsewhere only once its device is approved; the platform does that for the instance's owner. */
async function approveDevice(instance: string, request: string): Promise<void> {
  const body = { request_id: request, device_id: await (await device()).deviceId() };
  await unwrap(api.POST('/me/instances/{id}/devices', { params: { path: { id: instance } }, body }));
}

/** Straight first, where that is thinkable; what fails there before it is live leads over the relay from then on. */
export function dialler(instance: { id: string; gateway_url: string; gateway_token: string }) {
  let direct = directUrl(instance.gateway_url);
  // Asked for once: a gateway that refuses an approved device has another reason.
  let asked = false;
  return (): Promise<Dialled> => {
    if (direct === null) return dialRelay(instance.id);
    const straight: Dialled = {
      url: direct,
      introduce: async (challenge) => (await device()).deviceProof(challenge, instance.gateway_token),
      detour: () => (direct = null),
    };
    if (!asked)
      straight.approve = (request) => {
        asked = true;
        return approveDevice(instance.id, request);
      };
    return Promise.resolve(straight);
  };
}
