// A time without measurements stays empty on the chart, and as wide as it was long.
import { expect, it } from 'vitest';
import { withGaps } from './gaps';

const at = (minute: number, cpu_percent = 10) => ({
  created_at: new Date(Date.UTC(2026, 0, 1, 0, minute)).toISOString(),
  cpu_percent,
  memory_percent: 20,
  disk_percent: 30,
});

it('leaves measurements without a pause alone', () => {
  const list = [0, 5, 10, 16, 20].map((minute) => at(minute));
  expect(withGaps(list)).toEqual(list);
  expect(withGaps([])).toEqual([]);
  expect(withGaps([at(0)])).toEqual([at(0)]);
});

it('fills a pause with unknown values, one for each that is missing', () => {
  const filled = withGaps([at(0), at(5), at(10), at(30), at(35)]);
  expect(filled.map((point) => point.cpu_percent)).toEqual([10, 10, 10, null, null, null, 10, 10]);
  expect(filled[3]?.created_at).toBe(at(15).created_at);
});
