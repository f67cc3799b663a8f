// What an assistant may take of its server: the four limits, where they may lie, and whose value holds.
import type { NumberRange } from '@tidepool/shared/ui/number';
import type { HeldLimits, LimitValues } from '../records';

export const LIMITS = ['memory_mib', 'cpu_percent', 'tasks', 'disk_mib'] as const;
export type Limit = (typeof LIMITS)[number];

/** As the API's document has them; a test compares the two. */
export const RANGES: Readonly<Record<Limit, NumberRange>> = {
  memory_mib: { min: 256, max: 1_048_576 },
  cpu_percent: { min: 10, max: 100_000 },
  tasks: { min: 64, max: 1_000_000 },
  disk_mib: { min: 100, max: 100_000_000 },
};

/** What holds where nobody has set a value. */
export const PLATFORM: HeldLimits = { memory_mib: 2048, cpu_percent: 200, tasks: 512, disk_mib: 10_240 };

/** Whose value holds, from the nearest to the one that always has one. */
export type Origin = 'own' | 'profession' | 'server' | 'platform';

/** What holds for an instance where it sets nothing itself, and whose value that is. */
export function inherited(
  limit: Limit,
  profession: LimitValues | null,
  server: LimitValues,
): { value: number; origin: Exclude<Origin, 'own'> } {
  const theirs = profession?.[limit];
  if (theirs != null) return { value: theirs, origin: 'profession' };
  const here = server[limit];
  return here == null ? { value: PLATFORM[limit], origin: 'platform' } : { value: here, origin: 'server' };
}
