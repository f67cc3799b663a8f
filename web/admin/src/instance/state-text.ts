// The comparison of an instance with our records, in words: its fields and their values, what each difference takes, and
// what will be done. What this version does not know is shown as the server names it.
import { exact } from '@tidepool/shared/i18n/time';
import type { InstanceState, StateField } from '../records';
import { askText } from './ask-text';
import type { CompareKey, Translate } from './compare-texts';

const STEPS = [
  'write_config',
  'reload',
  'restart',
  'start',
  'stop',
  'stop_for_good',
  'vacate',
  'put_home_away',
  'remove_user',
  'make_user',
  'write_unit',
  'enable_unit',
  'remove_unit',
] as const;

/** The steps in their order, on one line. */
export function stepsText(steps: readonly string[], t: Translate): string {
  const one = (step: string) => {
    const known = STEPS.find((name) => name === step);
    return known === undefined ? step : t(`step.${known}`);
  };
  return steps.map(one).join(t('compare.comma'));
}

export const isDifferent = (field: StateField) => field.effect !== 'nothing';
export const isAny = (state: InstanceState, effect: string) =>
  state.fields.some((field) => field.effect === effect);

const EFFECTS = ['hot', 'restart', 'start', 'operation'] as const;

/** What it takes until both agree. */
export function effectText(effect: string, t: Translate): string {
  return t(`effect.${EFFECTS.find((name) => name === effect) ?? 'other'}`);
}

/** The fields that are about the instance as a whole, with the English words that the server has for their values. */
const WHOLE: Readonly<Record<string, { name: CompareKey; words: Readonly<Record<string, CompareKey>> }>> = {
  service: {
    name: 'compare.service',
    words: { runs: 'compare.runs', down: 'compare.down', missing: 'compare.missing' },
  },
  unit: {
    name: 'compare.unit',
    words: {
      missing: 'compare.missing',
      'as written': 'compare.asWritten',
      'changed on the server': 'compare.changed',
      'not ours': 'compare.notOurs',
    },
  },
  unix_user: { name: 'compare.unix_user', words: { missing: 'compare.missing' } },
  key: { name: 'compare.key', words: { none: 'compare.missing', 'a key of its own': 'compare.ownKey' } },
  release: { name: 'compare.release', words: { 'another release': 'compare.otherRelease' } },
  configuration: {
    name: 'compare.configuration',
    words: { there: 'compare.there', missing: 'compare.missing' },
  },
};
const wholeOf = (name: string) => (Object.hasOwn(WHOLE, name) ? WHOLE[name] : undefined);

/** A field's name in words; null for a path in the configuration. */
export function fieldName(name: string, t: Translate): string | null {
  const whole = wholeOf(name);
  return whole === undefined ? null : t(whole.name);
}

/** A value in words; null for one that is shown as it is. */
export function valueText(name: string, value: string, t: Translate, locale: string): string | null {
  const whole = wholeOf(name);
  if (whole === undefined) return value === 'missing' ? t('config.nothing') : null;
  const since = name === 'service' ? Date.parse(/^runs since (.+)$/.exec(value)?.[1] ?? '') : Number.NaN;
  if (!Number.isNaN(since)) return t('compare.runsSince', { time: exact(since, locale) });
  const key = Object.hasOwn(whole.words, value) ? whole.words[value] : undefined;
  return key === undefined ? null : t(key);
}

/** What a pass does about it. `steps` would restart the assistant, too, which a pass does not. */
function passText(state: InstanceState, t: Translate): string {
  if (isAny(state, 'restart')) return t(isAny(state, 'hot') ? 'compare.whatHot' : 'compare.whatCold');
  return state.steps.length === 0 ? t('compare.whatUnfinished') : stepsText(state.steps, t);
}

/** What will be done about the differences by itself, and when. */
export function nextText(state: InstanceState, t: Translate): string {
  switch (state.next) {
    case 'nothing':
      return t(state.fields.some(isDifferent) ? 'compare.nextOther' : 'compare.nextNone');
    case 'reconcile':
      return t('compare.nextReconcile', { what: passText(state, t) });
    case 'wait':
      return t(state.hold ? 'compare.nextHeld' : 'compare.nextRelease', { what: passText(state, t) });
    case 'ask': {
      const why = askText(state.ask ?? '', t);
      if (state.steps.length === 0) return why;
      return `${why} ${t('compare.ifBrought', { steps: stepsText(state.steps, t) })}`;
    }
    case 'unknown':
      return t('compare.nextUnknown');
    default:
      return state.next;
  }
}

/** How far our records have come on the server, as a whole. */
export function generationText({ generation, applied }: InstanceState, t: Translate): string {
  if (generation === 0) return t('compare.generationNone');
  if (applied >= generation) return t('compare.generationSame', { applied });
  if (applied === 0) return t('compare.generationFirst', { generation });
  return t('compare.generationBehind', { applied, generation });
}

/** What somebody can ask for, also while it is held. What failed or did not stay is offered: only a person starts it again. */
export function offered(state: InstanceState): { hot: boolean; restart: boolean } {
  const restart = isAny(state, 'restart');
  const isReadable = !state.fields.some(
    (field) => field.name === 'configuration' && field.effect === 'operation',
  );
  const isDue = isAny(state, 'hot') || state.next === 'reconcile' || (state.next === 'ask' && !restart);
  return { hot: isDue && isReadable, restart };
}
