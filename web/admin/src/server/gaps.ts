// Measurements with the times at which there were none: a line over them would tell of something that nobody measured.
export interface Measured {
  created_at: string;
  cpu_percent: number | null;
  memory_percent: number | null;
  disk_percent: number | null;
}

/** A pause is a gap when it is longer than so many usual ones. */
const LONG = 2.5;
/** However long a gap is, it takes at most this part of the chart. */
const MOST = 200;

export function withGaps(list: readonly Measured[]): Measured[] {
  const times = list.map((point) => Date.parse(point.created_at));
  const pauses = times.slice(1).map((time, index) => time - (times[index] ?? time));
  const usual = pauses.toSorted((a, b) => a - b)[Math.floor(pauses.length / 2)] ?? 0;
  return list.flatMap((point, index) => {
    const before = times[index - 1];
    const at = times[index];
    if (before === undefined || at === undefined || usual <= 0 || at - before <= LONG * usual) return [point];
    const missing = Math.min(MOST, Math.round((at - before) / usual) - 1);
    const none = Array.from({ length: missing }, (_, place) => ({
      created_at: new Date(before + ((place + 1) * (at - before)) / (missing + 1)).toISOString(),
      cpu_percent: null,
      memory_percent: null,
      disk_percent: null,
    }));
    return [...none, point];
  });
}
