// The comparison in words: what each field says, what will be done and when, what is offered.
import { fill } from '@tidepool/shared/i18n/translate';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { en as general } from '../messages/en';
import { zh as generalChinese } from '../messages/zh';
import type { InstanceState } from '../records';
import { en as own, zh as ownChinese, type Translate } from './compare-texts';
import { effectText, fieldName, generationText, nextText, offered, stepsText, valueText } from './state-text';

const en = { ...general, ...own };
const zh = { ...generalChinese, ...ownChinese };
const t: Translate = (key, values) => fill(en[key], values, 'en');
const chinese: Translate = (key, values) => fill(zh[key], values, 'zh');

const SAME: InstanceState = {
  generation: 7,
  applied: 7,
  hold: null,
  compared_at: '2026-06-10T10:00:00Z',
  unreachable: null,
  fields: [{ name: 'service', desired: 'runs', observed: 'runs', effect: 'nothing' }],
  foreign: [],
  untouched: true,
  differs: '',
  differs_since: null,
  steps: [],
  next: 'nothing',
  ask: null,
  failures: 0,
  error: '',
};
const field = (effect: string) => ({ name: `a.${effect}`, desired: '1', observed: '2', effect });
const state = (effects: string[], next: string, rest: Partial<InstanceState> = {}): InstanceState => ({
  ...SAME,
  fields: effects.map(field),
  next,
  ...rest,
});
const HELD = { hold: { until: '2026-06-10T12:00:00Z', reason: 'a test', by: 'ada' } };
const HOT_STEPS = { steps: ['write_config', 'reload'] };
const COLD_STEPS = { steps: ['write_config', 'restart'] };
const NEEDS_RESTART = 'it takes a restart: it is brought with the next one, or by a person';

describe('what will be done', () => {
  it.each([
    [SAME, 'Nothing.'],
    [state(['start'], 'nothing'), en['compare.nextOther']],
    [
      state(['hot'], 'reconcile', HOT_STEPS),
      'With the next pass, within five minutes: write the configuration, let the assistant reload its configuration.',
    ],
    [state([], 'reconcile'), 'With the next pass, within five minutes: finish what was begun.'],
    [
      state(['hot'], 'wait', { ...HELD, ...HOT_STEPS }),
      'Nothing while it is held. With the first pass after that: write the configuration, let the assistant reload its configuration.',
    ],
    [
      state(['hot'], 'wait', HOT_STEPS),
      'Nothing yet: the first pass after an upgrade of the platform only compares. With the pass after it: write the configuration, let the assistant reload its configuration.',
    ],
    [
      state(['restart'], 'ask', { ...COLD_STEPS, ask: NEEDS_RESTART }),
      `${en['ask.restart']} If you bring it now: write the configuration, restart the assistant.`,
    ],
    [state([], 'unknown', { unreachable: 'no route' }), 'Not known until the server can be asked.'],
    [state([], 'dance'), 'dance'],
  ])('%#', (one, expected) => {
    expect(nextText(one, t)).toBe(expected);
  });

  it('promises no restart by itself', () => {
    for (const next of ['reconcile', 'wait'])
      for (const effects of [['hot', 'restart'], ['restart']])
        for (const hold of [{}, HELD]) {
          const text = nextText(state(effects, next, { ...COLD_STEPS, ...hold }), t);
          expect(text).not.toContain('restart the assistant');
          expect(text).toMatch(/waits for a restart|needs a restart/);
        }
  });

  it('is said in Chinese, too', () => {
    expect(nextText(state(['hot'], 'reconcile', HOT_STEPS), chinese)).toBe(
      '下一轮对比时（五分钟内）：写入配置、让助手重新加载配置。',
    );
  });
});

it('has words for every step of the server', () => {
  const source = readFileSync(
    path.join(import.meta.dirname, '../../../../crates/fleet/src/reconcile/step.rs'),
    'utf8',
  );
  const steps = [...source.matchAll(/Step::\w+ => "(\w+)"/g)].map((match) => match[1] ?? '');
  expect(steps.length).toBeGreaterThan(10);
  for (const step of steps) expect(stepsText([step], t), step).not.toBe(step);
  expect(stepsText(['fly', 'start'], t)).toBe('fly, start the assistant');
});

it('says what each difference takes', () => {
  for (const effect of ['hot', 'restart', 'start', 'operation'])
    expect(effectText(effect, t)).not.toBe(en['effect.other']);
  expect(effectText('magic', t)).toBe(en['effect.other']);
});

it('names fields and their values; paths and what is written there stay as they are', () => {
  const value = (name: string, text: string) => valueText(name, text, t, 'en-GB');
  expect(fieldName('unix_user', t)).toBe('Unix user');
  expect(fieldName('gateway.port', t)).toBeNull();
  expect(fieldName('constructor', t)).toBeNull();
  expect(value('service', 'down')).toBe('is down');
  expect(value('service', 'runs since 2026-06-10T10:00:00Z')).toMatch(/^runs since 10 June 2026/);
  expect(value('service', 'runs since yesterday')).toBeNull();
  expect(value('unit', 'changed on the server')).toBe('changed on the server');
  expect(valueText('unit', 'changed on the server', chinese, 'zh-CN')).toBe('在服务器上被修改');
  expect(value('unix_user', 'down')).toBeNull();
  expect(value('gateway.port', '18789')).toBeNull();
  expect(value('gateway.port', 'missing')).toBe('nothing');
});

it.each([
  [0, 0, en['compare.generationNone']],
  [1, 0, 'Change 1 of our records is not on the server yet.'],
  [8, 7, 'Change 7 of our records is on the server; change 8 is not yet.'],
  [8, 8, 'Change 8 of our records, the latest, is on the server.'],
])('generation %i, applied %i', (generation, applied, expected) => {
  expect(generationText({ ...SAME, generation, applied }, t)).toBe(expected);
});

it('offers what makes sense', () => {
  const both = (one: InstanceState) => [offered(one).hot, offered(one).restart];
  expect(both(SAME)).toEqual([false, false]);
  expect(both(state(['hot'], 'reconcile'))).toEqual([true, false]);
  expect(both(state(['restart'], 'ask'))).toEqual([false, true]);
  expect(both(state(['hot', 'restart'], 'reconcile'))).toEqual([true, true]);
  expect(both(state(['start', 'operation'], 'nothing'))).toEqual([false, false]);
  // What was begun and failed too often: no field says so.
  expect(both(state([], 'ask'))).toEqual([true, false]);
  // A person's wish counts more than a hold.
  expect(both(state(['hot', 'restart'], 'wait', HELD))).toEqual([true, true]);
  expect(both(state([], 'unknown'))).toEqual([false, false]);
});
