// Where the way is broken, by what the server, the relay or the gateway said.
import type { Hop } from './types';

/** Why there was no ticket, by the answer's status. */
export function hopOfTicket(status: number): Hop {
  switch (status) {
    case 401:
      return 'session';
    case 403:
      return 'refused';
    case 404:
      return 'not-yours';
    case 429:
      return 'crowded';
    default:
      return 'server';
  }
}

/** Why an open connection ended, by what the gateway or the relay said. */
export function hopOfClose(code: number, reason: string): Hop {
  switch (code) {
    case 1000:
      return 'silent';
    case 1008:
      if (/origin/i.test(reason)) return 'origin';
      if (/session/i.test(reason)) return 'session';
      return /not yours/i.test(reason) ? 'not-yours' : 'refused';
    case 1009:
      return 'too-long';
    case 1011:
      return 'instance';
    case 1012:
      return 'restarting';
    case 1013:
      return 'starting';
    default:
      return 'server';
  }
}
