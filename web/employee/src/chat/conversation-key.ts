// Which stored conversations the chat can open.
import { storedPreference } from './preference';

/** The assistant's own begin like this, and every way can open them. */
const ASSISTANTS = 'agent:';

/** A conversation of the model chat is not known to the assistant: the live connection would show an empty one. */
export function opensInChat({
  instance_id,
  session_key,
}: {
  instance_id: string;
  session_key: string;
}): boolean {
  if (session_key === '') return false;
  return session_key.startsWith(ASSISTANTS) || storedPreference(instance_id) === 'gateway';
}
