// The dual write: every prompt and every whole reply is also sent to POST /me/chat/save. Fire and forget: whatever comes
// of it never touches the chat; a failure is only marked, and can be tried again.
import type { components } from '@tidepool/shared/api/employee.gen';
import { unwrap } from '@tidepool/shared/api/envelope';
import { api } from '../api';
import { idOf } from './engine/ids';
import type { Message } from './engine/types';

type SavedMessage = components['schemas']['SaveMessage'];

/** Messages that could not be saved, by id; all others are saved, or about to be. */
export type Unsaved = ReadonlyMap<string, 'failed' | 'saving'>;

export class Saver {
  private unsaved: Unsaved = new Map();
  private readonly bodies = new Map<string, SavedMessage>();
  private readonly listeners = new Set<() => void>();

  constructor(private readonly instance: string) {}

  state = (): Unsaved => this.unsaved;

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  save(message: Message, conversation: string | null) {
    const body: SavedMessage = {
      instance_id: this.instance,
      role: message.role,
      content: message.text,
      tokens: message.role === 'user' ? 0 : (message.usage?.completion ?? 0),
      client_id: clientId(message),
      ...(conversation !== null && { session_key: conversation }),
    };
    this.bodies.set(message.id, body);
    void this.post(message.id, body);
  }

  retry = (id: string) => {
    const body = this.bodies.get(id);
    if (body === undefined || this.unsaved.get(id) === 'saving') return;
    this.mark(id, 'saving');
    void this.post(id, body);
  };

  private async post(id: string, body: SavedMessage) {
    try {
      await unwrap(api.POST('/me/chat/save', { body }));
      this.mark(id, null);
    } catch {
      this.mark(id, 'failed');
    }
  }

  private mark(id: string, state: 'failed' | 'saving' | null) {
    if (state === null) this.bodies.delete(id);
    if (state === null && !this.unsaved.has(id)) return;
    const next = new Map(this.unsaved);
    if (state === null) next.delete(id);
    else next.set(id, state);
    this.unsaved = next;
    for (const listener of this.listeners) listener();
  }
}

/** Makes a repeat harmless. A reply is seen by every tab that is open: they all call it the same. */
function clientId({ role, id, run }: Message): string {
  return role === 'user' ? id : idOf(`${run ?? id}:reply`);
}
