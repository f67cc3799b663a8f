// How long to wait before the next try: doubling up to half a minute, a little uneven, so that many pages do not come at once.
export function backoff(failures: number, random: number = Math.random()): number {
  const base = Math.min(30_000, 1000 * 2 ** Math.max(0, failures - 1));
  return Math.round(base * (0.8 + 0.4 * random));
}
