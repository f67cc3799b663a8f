// Limits: the ranges are those of the API, and the nearest value holds.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { inherited, LIMITS, PLATFORM, RANGES } from './limits';

const { components } = JSON.parse(
  readFileSync(path.join(import.meta.dirname, '../../../../openapi/admin.json'), 'utf8'),
) as {
  components: {
    schemas: {
      LimitValues: { properties: Record<string, { minimum: number; maximum: number; example: number }> };
    };
  };
};
const documented = components.schemas.LimitValues.properties;

it('has the limits, ranges and values of the API’s document', () => {
  expect(Object.keys(documented).sort()).toEqual([...LIMITS].sort());
  for (const limit of LIMITS) {
    expect({ min: documented[limit]?.minimum, max: documented[limit]?.maximum }).toEqual(RANGES[limit]);
    expect(documented[limit]?.example).toBe(PLATFORM[limit]);
  }
});

it('takes the profession’s value before the server’s before the platform’s', () => {
  const profession = { memory_mib: 4096, cpu_percent: null };
  const server = { memory_mib: 1024, cpu_percent: 100 };
  expect(inherited('memory_mib', profession, server)).toEqual({ value: 4096, origin: 'profession' });
  expect(inherited('memory_mib', null, server)).toEqual({ value: 1024, origin: 'server' });
  expect(inherited('cpu_percent', profession, server)).toEqual({ value: 100, origin: 'server' });
  expect(inherited('tasks', profession, server)).toEqual({ value: 512, origin: 'platform' });
});
