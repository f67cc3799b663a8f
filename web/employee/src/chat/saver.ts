// The dual write: every prompt and every whole reply is also sent to POST /me/chat/save. Fire and forget: whatever comes
// of it never touches the chat; a failure is only marked, and can be tried again.
import { unwrap } from '@tidepool/shared/api/envelope';
import { notOffered, pending, type SavedMessage } from '../pending-api';
import { newId } from './engine/ids';
import type { Message } from './engine/types';

/** Messages that could not be saved, by id; all others are saved, or about to be. */
export type Unsaved = ReadonlyMap<string, 'failed' | 'saving'>;

/** A server without the endpoint is asked once per page, not once per message. */
let offered = true;

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
      client_id: newId(),
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
    if (!offered) return;
    try {
      await unwrap(pending.POST('/me/chat/save', { body, params: {} as never }));
      this.mark(id, null);
    } catch (error) {
      if (notOffered(error)) offered = false;
      this.mark(id, offered ? 'failed' : null);
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
