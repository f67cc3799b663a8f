// Ids that two tabs must agree on.
import { expect, it } from 'vitest';
import { idOf, newId } from './ids';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-([48])[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

it('are UUIDs, the same for the same text and others for others', () => {
  expect(newId()).toMatch(UUID);
  expect(idOf('run:reply')).toMatch(UUID);
  expect(idOf('run:reply')).toBe(idOf('run:reply'));
  const made = new Set(Array.from({ length: 20_000 }, (_, at) => idOf(`${at}:reply`)));
  expect(made.size).toBe(20_000);
});
