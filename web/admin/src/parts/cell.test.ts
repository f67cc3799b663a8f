// Only an instance with a unit of ours on its server, and outside of its cell, can be brought into it.
import { expect, it } from 'vitest';
import { en } from '../messages/en';
import { zh } from '../messages/zh';
import { canMoveIntoCell, whyNoEntry } from './cell';

const plain = {
  cell: 'unconfined',
  isolation: 'own',
  is_main: false,
  container_id: '',
  runner: 'unit',
} as const;

it.each([
  [{}, null],
  [{ cell: 'unknown', isolation: 'unknown' }, null],
  [{ isolation: 'adopted' }, null],
  [{ cell: 'confined' }, 'batch.inCell'],
  [{ cell: 'altered' }, null],
  [{ cell: 'foreign' }, 'batch.noCell'],
  [{ is_main: true }, 'batch.noCell'],
  [{ cell: 'unknown', container_id: 'claw' }, 'batch.noCell'],
  [{ cell: 'unknown', isolation: 'none' }, 'batch.notOnServer'],
  [{ cell: 'unknown', isolation: 'adopted', runner: 'user_unit' }, 'batch.noCell'],
  [{ cell: 'unknown', isolation: 'adopted', runner: 'process' }, 'batch.noCell'],
  [{ cell: 'unknown', isolation: 'adopted', runner: 'address' }, 'batch.notOnServer'],
] as const)('%o', (change, why) => {
  expect(whyNoEntry({ ...plain, ...change })).toBe(why);
});

const adopted = {
  runner: 'user_unit',
  unit: 'openclaw-gateway.service',
  isolation: 'adopted',
  is_main: false,
  moved_from: null,
} as const;
const MOVED = { runner: 'user_unit', home: '/home/ada', unit: '', moved_at: '2026-06-10T10:00:00Z' } as const;

it.each([
  [{}, true],
  [{ isolation: 'shared' }, true],
  [{ runner: 'process', unit: '' }, true],
  [{ runner: 'unit' }, true],
  // The platform wrote it.
  [{ runner: 'unit', unit: '', isolation: 'shared' }, false],
  [{ runner: 'container' }, false],
  [{ runner: 'address' }, false],
  [{ is_main: true }, false],
  [{ isolation: 'own' }, false],
  [{ moved_from: MOVED }, false],
] as const)('can be moved into a cell: %j %s', (change, can) => {
  expect(canMoveIntoCell({ ...adopted, ...change })).toBe(can);
});

it('has words for each state and opening', () => {
  const keys = [
    ...['confined', 'altered', 'unconfined', 'foreign', 'unknown'].flatMap((state) => [
      `cell.${state}`,
      `cell.${state}Text`,
    ]),
    ...['browser', 'devices', 'docker', 'sudo'].flatMap((one) => [
      `cell.opening.${one}`,
      `cell.opening.${one}Text`,
    ]),
  ];
  for (const key of keys) {
    expect(en, key).toHaveProperty([key]);
    expect(zh, key).toHaveProperty([key]);
  }
});
