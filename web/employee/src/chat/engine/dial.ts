// The ways to an instance's gateway: through the platform's relay with a one-time ticket, or straight to it where the
// browser can reach it.
import { ApiError, unwrap } from '@tidepool/shared/api/envelope';
import { pending } from '../../pending-api';
import { deviceProof } from './device';
import { HopError, type Dialled } from './socket-link';
import type { Hop } from './types';

/** `offered` false: it is known already that there is no relay. */
export async function dialRelay(instance: string, offered: boolean): Promise<Dialled> {
  if (!offered) throw new HopError('no-relay');
  try {
    const params = { path: { id: instance } };
    const { ticket } = await unwrap(pending.POST('/me/instances/{id}/ws-ticket', { params, body: {} }));
    const url = new URL(`api/v1/me/instances/${encodeURIComponent(instance)}/ws`, document.baseURI);
    url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
    url.searchParams.set('ticket', ticket);
    return { url: url.href };
  } catch (error) {
    throw new HopError(error instanceof ApiError ? hopOfStatus(error.status) : 'server');
  }
}

function hopOfStatus(status: number): Hop {
  if (status === 404 || status === 405) return 'no-relay';
  if (status === 403) return 'refused';
  return status === 502 || status === 503 || status === 504 ? 'instance' : 'server';
}

/**
 * A socket that does not open says nothing of why. Asked by plain HTTP, the server does: a refusal and a dead instance have
 * their own statuses, and any other answer means that HTTP passes where the upgrade does not.
 */
export async function diagnose(url: string): Promise<Hop> {
  const plain = new URL(url);
  plain.protocol = plain.protocol === 'wss:' ? 'https:' : 'http:';
  // The ticket is for one use; the question must not spend another one.
  plain.searchParams.delete('ticket');
  const answer = await fetch(plain, { headers: { accept: 'application/json' } });
  if (answer.status === 403) return 'origin';
  return answer.status === 502 || answer.status === 503 || answer.status === 504 ? 'instance' : 'no-upgrade';
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

export function dialDirect(url: string, token: string): Dialled {
  return { url, introduce: (challenge) => deviceProof(challenge, token) };
}
