// What is typed and not sent, one per instance: it survives a reload, a sign-in, and a look at another instance.
import { readStored, writeStored } from '@tidepool/shared/storage';
import { useCallback, useState } from 'react';

export function useDraft(account: string, instance: string): [string, (text: string) => void] {
  const key = `tidepool.chat.${account}.${instance}.draft`;
  const [draft, setDraft] = useState(() => ({ key, text: readStored(key) ?? '' }));
  const text = draft.key === key ? draft.text : (readStored(key) ?? '');
  const change = useCallback(
    (next: string) => {
      writeStored(key, next === '' ? null : next);
      setDraft({ key, text: next });
    },
    [key],
  );
  return [text, change];
}
