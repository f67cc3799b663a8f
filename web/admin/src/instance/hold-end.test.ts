// When a hold ends: by its length, by the calendar, or at a time that the server takes.
import { expect, it } from 'vitest';
import { holdEnd } from './hold-end';

const NOW = new Date(2026, 5, 10, 22, 30).getTime();
const HOUR = 3_600_000;

it('counts hours and days from now', () => {
  expect(holdEnd('hour', '', NOW)?.getTime()).toBe(NOW + HOUR);
  expect(holdEnd('hours', '', NOW)?.getTime()).toBe(NOW + 4 * HOUR);
  expect(holdEnd('week', '', NOW)?.getTime()).toBe(NOW + 168 * HOUR);
});

it('ends tomorrow in the morning, by the reader’s own clock', () => {
  expect(holdEnd('tomorrow', '', NOW)).toEqual(new Date(2026, 5, 11, 9));
  const lastDay = new Date(2026, 11, 31, 1).getTime();
  expect(holdEnd('tomorrow', '', lastDay)).toEqual(new Date(2027, 0, 1, 9));
});

it('takes a date and time within 30 days', () => {
  expect(holdEnd('other', '2026-06-12T08:15', NOW)).toEqual(new Date(2026, 5, 12, 8, 15));
  for (const typed of ['', 'soon', '2026-06-10T22:30', '2025-06-12T08:15', '2026-07-11T08:15'])
    expect(holdEnd('other', typed, NOW), typed).toBeNull();
});
