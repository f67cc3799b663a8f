// Every obstacle that the server names has words in both languages, and an adoption begins with an id that the server takes.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import type { DiscoveredGateway } from '../records';
import { en, zh } from './adopt-texts';
import { canBeAdopted, cannotBeAdopted, obstacleText, proposedId, shownName } from './discovered-text';

const GATEWAY: DiscoveredGateway = {
  key: 'unit:openclaw.service',
  runner: 'unit',
  name: 'openclaw.service',
  image: '',
  user: 'ada',
  home: '/home/ada',
  running: true,
  lingers: null,
  port: 18_789,
  open_to_others: false,
  version: '2026.9.6',
  config: 'ok',
  model: null,
  channels: [],
  has_token: true,
  last_session_at: null,
  instance_id: null,
  email: null,
  only_observed: false,
  obstacle: null,
};

const source = readFileSync(
  path.join(import.meta.dirname, '../../../../crates/fleet/src/discover.rs'),
  'utf8',
);
const codes = [...source.matchAll(/Obstacle::\w+ => "([a-z_]+)",/g)].map(([, code]) => code ?? '');

it('knows every obstacle of the server', () => {
  expect(codes.length).toBeGreaterThan(8);
  const words = Object.keys(en).filter((key) => key.startsWith('adopt.obstacle.'));
  expect(words.map((key) => key.slice('adopt.obstacle.'.length)).sort()).toEqual([...codes].sort());
  for (const code of codes) {
    expect(obstacleText(code, (key) => zh[key as keyof typeof zh])).not.toBe(code);
  }
  expect(obstacleText('of_tomorrow', (key) => key)).toBe('of_tomorrow');
});

it.each([
  [{}, true, false],
  [{ only_observed: true, runner: 'process' }, true, false],
  [{ obstacle: 'no_token' }, false, true],
  // What is known is neither.
  [{ instance_id: 'ada' }, false, false],
  [{ instance_id: 'ada', obstacle: 'no_token' }, false, false],
] as const)('%j: can be adopted %s, cannot %s', (change, can, cannot) => {
  expect(canBeAdopted({ ...GATEWAY, ...change })).toBe(can);
  expect(cannotBeAdopted({ ...GATEWAY, ...change })).toBe(cannot);
});

it('says of every obstacle what happened and what to do next', () => {
  for (const code of codes) {
    const sentences = obstacleText(code, (key) => en[key as keyof typeof en]).match(/[^.]{2,}\.(?: |$)/g);
    expect(sentences?.length, code).toBeGreaterThan(1);
  }
});

it.each([
  ['openclaw.service', 'ada', 'ada'],
  ['openclaw-gateway.service', 'Ada B', 'ada-b'],
  ['openclaw.service', 'root', 'openclaw'],
  ['openclaw.service', '###', 'openclaw'],
  ['', 'root', 'assistant'],
  ['claw@Ada_1.service', 'ada', 'claw-ada-1'],
  ['', 'Åsa', 'sa'],
  ['', '###', 'assistant'],
])('proposes an id for %s of %s', (name, user, id) => {
  expect(proposedId({ ...GATEWAY, name, user }, new Set())).toBe(id);
});

it('proposes no id twice', () => {
  expect(proposedId(GATEWAY, new Set(['ada', 'ada-2']))).toBe('ada-3');
});

it('is named by its unit, else by its home', () => {
  expect(shownName(GATEWAY)).toBe('openclaw.service');
  expect(shownName({ ...GATEWAY, name: '' })).toBe('/home/ada');
});
