// The endpoint of the contract that the generated types do not name yet, in the same form: when the snapshot has it, it goes
// from here and its caller uses `api`. A server without it answers 404, which the page shows as "not available".
import { ApiError } from '@tidepool/shared/api/envelope';
import type { Client } from 'openapi-fetch';
import { api } from './api';

export interface Repair {
  id: string | number;
  rule: string;
  action: string;
  status: string;
  /** How it was afterwards. */
  after: string;
  created_at: string;
}

interface PendingPaths {
  '/me/instances/{id}/repairs': {
    get: {
      parameters: { query?: { limit?: number }; path: { id: string } };
      responses: {
        200: { content: { 'application/json': { code: string; data: { list: Repair[] }; msg: string } } };
      };
    };
  };
}

export const pending = api as unknown as Client<PendingPaths>;

/** The server does not have this endpoint (yet), as opposed to any other failure of it. */
export function notOffered(error: unknown): boolean {
  return error instanceof ApiError && (error.status === 404 || error.status === 405);
}
