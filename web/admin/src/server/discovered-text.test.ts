// Every obstacle that the server names has words in both languages, and an adoption begins with an id that the server takes.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import type { DiscoveredGateway } from '../records';
import { en, zh } from './adopt-texts';
import { canBeAdopted, obstacleText, proposedId, shownName } from './discovered-text';

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

it('can adopt what is unknown and has no obstacle', () => {
  expect(canBeAdopted(GATEWAY)).toBe(true);
  expect(canBeAdopted({ ...GATEWAY, obstacle: 'no_token' })).toBe(false);
  expect(canBeAdopted({ ...GATEWAY, instance_id: 'ada' })).toBe(false);
});

it.each([
  ['openclaw.service', 'ada', 'openclaw'],
  ['claw@Ada_1.service', 'ada', 'claw-ada-1'],
  ['', 'Åsa', 'sa'],
  ['', '###', 'assistant'],
])('proposes an id for %s of %s', (name, user, id) => {
  expect(proposedId({ ...GATEWAY, name, user }, new Set())).toBe(id);
});

it('proposes no id twice', () => {
  expect(proposedId(GATEWAY, new Set(['openclaw', 'openclaw-2']))).toBe('openclaw-3');
});

it('is named by its unit, else by its home', () => {
  expect(shownName(GATEWAY)).toBe('openclaw.service');
  expect(shownName({ ...GATEWAY, name: '' })).toBe('/home/ada');
});
