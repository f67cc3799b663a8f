// The state that engines share: one observable record with the changes that all of them make to their messages.
import { timed } from './latency';
import { EMPTY, type EngineState, type Message, type Older } from './types';

export class Thread {
  private current: EngineState = EMPTY;
  private readonly listeners = new Set<() => void>();

  state = (): EngineState => this.current;

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  set(change: Partial<EngineState>) {
    this.current = { ...this.current, ...change };
    for (const listener of this.listeners) listener();
  }

  add(message: Message) {
    this.set({ messages: [...this.current.messages, message] });
  }

  find(id: string): Message | undefined {
    return this.current.messages.find((message) => message.id === id);
  }

  /** Changes one message; an id that has left the thread is no message any more. */
  patch(id: string, change: Partial<Message>) {
    if (this.find(id) === undefined) return;
    this.set({
      messages: this.current.messages.map((message) =>
        message.id === id ? { ...message, ...change } : message,
      ),
    });
  }

  /** Puts messages before the first one, `instead` of so many that were there. Where a history gives no ids of its own, those of two readings may meet. */
  addBefore(before: readonly Message[], older: Older, instead = 0) {
    const [next, ...others] = this.current.messages.slice(instead);
    // Its prompt may only come now.
    const rest = next === undefined ? [] : [timed(next, before.at(-1)), ...others];
    const taken = new Set(rest.map(({ id }) => id));
    const fresh = before.map((message) =>
      taken.has(message.id) ? { ...message, id: `${message.id}-older` } : message,
    );
    this.set({ messages: [...fresh, ...rest], older });
  }

  remove(id: string) {
    this.set({ messages: this.current.messages.filter((message) => message.id !== id) });
  }

  /** Drops `id` and everything after it. */
  cutAt(id: string) {
    const at = this.current.messages.findIndex((message) => message.id === id);
    if (at !== -1) this.set({ messages: this.current.messages.slice(0, at) });
  }

  lastPrompt(): Message | undefined {
    return this.current.messages.findLast((message) => message.role === 'user');
  }
}
