// A repair's rule in words: what it found. A rule that this version does not know is shown as the server names it.
import type { RepairRule } from '@tidepool/shared/api/registry.gen';
import type { Key } from '../messages';

const RULES: Readonly<Record<RepairRule, Key>> = {
  no_api_key: 'rule.no_api_key',
  exit_loop: 'rule.exit_loop',
  out_of_memory: 'rule.out_of_memory',
  unknown_key: 'rule.unknown_key',
  auth_profiles: 'rule.auth_profiles',
  port_taken: 'rule.port_taken',
  not_listening: 'rule.not_listening',
  rate_limited: 'rule.rate_limited',
  bot_channel: 'rule.bot_channel',
  foreign_listener: 'rule.foreign_listener',
  stuck_session: 'rule.stuck_session',
  auto_recovery: 'job.auto_recovery',
  llm_self_heal: 'job.llm_self_heal',
};

export function ruleText(rule: string, t: (key: Key) => string): string {
  return Object.hasOwn(RULES, rule) ? t(RULES[rule as RepairRule]) : rule;
}
