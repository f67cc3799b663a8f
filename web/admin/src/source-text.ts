// Who or what started a task, in the reader's language. The server says it in a few fixed English words, or names a
// repair's rule or another task's type; anything else is a person's address, shown as it is.
import { ruleText } from './guardian/rule-text';
import type { Key } from './messages';
import { taskName } from './parts/task-status';

const SOURCES: ReadonlyMap<string, Key> = new Map([
  ['System', 'source.system'],
  ['claim', 'source.claim'],
  ['profession claim', 'source.professionClaim'],
  ['give back', 'source.giveBack'],
  ['reclaim', 'source.reclaim'],
  ['bind', 'source.bind'],
  ['marketplace', 'source.marketplace'],
  ['instance released', 'source.instanceReleased'],
  ['instance deleted', 'source.instanceDeleted'],
  ['user status', 'source.userStatus'],
  ['daily quota', 'source.dailyQuota'],
  ['key changed', 'source.keyChanged'],
  ['changed meanwhile', 'source.changedMeanwhile'],
  ['reminder', 'source.reminder'],
  ['key sync', 'source.keySync'],
  ['models sync', 'source.modelsSync'],
  ['alert', 'source.alert'],
  ['reconcile', 'source.reconcile'],
]);

export function sourceText(source: string, t: (key: Key) => string): string {
  const key = SOURCES.get(source);
  if (key !== undefined) return t(key);
  // Each of the two leaves a word as it is that it does not know.
  return taskName(ruleText(source, t), t);
}
