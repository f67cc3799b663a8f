// The gateway's conversations: those begun here are made there, named after their first words, and listed.
import { conversationsOf, MAIN_SESSION, type WireSessions } from './openclaw';
import { failureOf, type SocketLink } from './socket-link';
import type { Thread } from './thread';
import type { Unfinished } from './unfinished';

const SESSIONS_SIZE = 60;
const TITLE_LENGTH = 60;

export class Sessions {
  /** Those that the gateway is just asked to make. */
  private readonly making = new Map<string, Promise<unknown>>();

  constructor(
    private readonly link: SocketLink,
    private readonly thread: Thread,
    private readonly unfinished: Unfinished,
  ) {}

  /** A conversation that was begun here is made before anything is said in it. */
  make(key: string): Promise<unknown> {
    const under = this.making.get(key);
    if (under !== undefined) return under;
    const made = this.link
      .request('sessions.create', { key })
      .catch((error: unknown) => {
        // It may have been made before; what is said in it tells.
        if (failureOf(error).code === 'network') throw error;
      })
      .then(() => this.unfinished.made(key))
      .finally(() => this.making.delete(key));
    this.making.set(key, made);
    return made;
  }

  /** A conversation is called after its first words. */
  name(key: string, text: string) {
    if (key === MAIN_SESSION) return;
    const label = Array.from(text.split('\n')[0] ?? '')
      .slice(0, TITLE_LENGTH)
      .join('');
    void this.link.request('sessions.patch', { key, label }).then(
      () => this.list(),
      () => null,
    );
  }

  async list() {
    try {
      const list = (await this.link.request('sessions.list', { limit: SESSIONS_SIZE })) as WireSessions;
      const conversations = conversationsOf(list);
      const open = this.thread.state().conversation ?? MAIN_SESSION;
      this.thread.set({
        conversations,
        // The first conversation has a name once it exists.
        conversation: conversations.some((one) => one.key === open) ? open : this.thread.state().conversation,
      });
    } catch {
      return;
    }
  }
}
