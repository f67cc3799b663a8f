// How something that was asked of the server ended. "Unknown" is an end of its own: no answer came, so it may have been done.
import { ApiError } from '../api/envelope';

export type Outcome = 'done' | 'failed' | 'unknown';

export function outcomeOf(error: unknown): Exclude<Outcome, 'done'> {
  if (!(error instanceof ApiError)) return 'failed';
  return error.status === 0 || error.status === 504 ? 'unknown' : 'failed';
}
