// Only an instance with a unit of ours on its server, and outside of its cell, can be brought into it.
import { expect, it } from 'vitest';
import { en } from '../messages/en';
import { zh } from '../messages/zh';
import { whyNoEntry } from './cell';

const plain = { cell: 'unconfined', isolation: 'own', is_main: false, container_id: '' } as const;

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
] as const)('%o', (change, why) => {
  expect(whyNoEntry({ ...plain, ...change })).toBe(why);
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
