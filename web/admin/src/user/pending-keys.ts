// A revocation that does not hold at the LLM gateway yet is said where it was made.
import { toast } from '@tidepool/shared/ui/toast';
import type { useText } from '../messages';
import type { PendingKey } from '../records';

export function warnOfPending(keys: PendingKey[], t: ReturnType<typeof useText>['t']) {
  const [first] = keys;
  if (first === undefined) return;
  const name = keys.map((key) => key.name).join(', ');
  const text = first.problem === '' ? 'users.keysUnderWay' : 'users.keysPending';
  toast('error', t(text, { name, why: first.problem }));
}
