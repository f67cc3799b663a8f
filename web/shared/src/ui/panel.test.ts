// Old numbers are told from new ones by what the server says of them.
import { expect, it } from 'vitest';
import { staleSince } from './panel';

it('takes the age from the answer, and only when it says that it is old', () => {
  const as_of = '2026-11-15T09:00:00Z';
  expect(staleSince({ stale: true, as_of })).toBe(Date.parse(as_of));
  expect(staleSince({ stale: false, as_of })).toBeNull();
  expect(staleSince([])).toBeNull();
  expect(staleSince(undefined)).toBeNull();
});
