// What replies cost. The gateway's request log is the only place that a cost comes from: an assistant's own sums know none
// of our prices.
import type { components } from '@tidepool/shared/api/employee.gen';
import { unwrap } from '@tidepool/shared/api/envelope';
import { api } from '../../api';
import type { Usage } from './types';

export interface Used {
  id: string;
  at: number;
  /** When it was asked for, where that is known: what was logged before is another's. */
  since?: number;
  usage: Usage;
}

/** By the reply's id; one whose requests are not all found has none. */
export type Costs = (replies: readonly Used[]) => Promise<Map<string, number>>;

type Row = components['schemas']['LogEntry'];

const ROWS = 100;
/** The two clocks may differ, and a request is logged when it ends. */
const APART_MS = 10 * 60_000;
/** As much too early may a request seem that was made at once. */
const EARLY_MS = 2000;

export function requestCosts(instance: string): Costs {
  return async (replies) => {
    const query = { instance_id: instance, status: 'success' as const, size: ROWS };
    const { logs } = await unwrap(api.GET('/me/usage/logs', { params: { query } }));
    return costsOf(replies, logs);
  };
}

/** Each reply's requests are the nearest in time with its numbers, and no request is two replies'. */
export function costsOf(replies: readonly Used[], rows: readonly Row[]): Map<string, number> {
  const free = new Set(rows);
  const costs = new Map<string, number>();
  for (const { id, at, since = -Infinity, usage } of replies.toReversed()) {
    const calls = usage.calls ?? [usage];
    const found = calls.map(({ prompt, completion }) => {
      let nearest: Row | undefined;
      const apart = (row: Row) => Math.abs(Date.parse(row.time) - at);
      for (const row of free) {
        const fits = row.prompt_tokens === prompt && row.completion_tokens === completion;
        const near = apart(row) <= APART_MS && Date.parse(row.time) >= since - EARLY_MS;
        if (fits && near && (nearest === undefined || apart(row) < apart(nearest))) nearest = row;
      }
      if (nearest !== undefined) free.delete(nearest);
      return nearest?.cost_usd;
    });
    if (!found.includes(undefined))
      costs.set(
        id,
        found.reduce<number>((sum, cost) => sum + (cost ?? 0), 0),
      );
  }
  return costs;
}
