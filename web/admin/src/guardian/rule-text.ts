// A repair's rule in words: what it found. A rule that this version does not know is shown as the server names it.
import { REPAIR_RULES, type RepairRule } from '@tidepool/shared/api/registry.gen';
import type { Key } from '../messages';

export function ruleText(rule: string, t: (key: Key) => string): string {
  const known: readonly string[] = REPAIR_RULES;
  return known.includes(rule) ? t(`rule.${rule as RepairRule}`) : rule;
}
