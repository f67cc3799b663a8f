// The engine that shows the instance's own chat window in a frame, on the embed origin. What is said there is between the
// person and the instance: this page sees nothing of it.
import { ApiError, unwrap } from '@tidepool/shared/api/envelope';
import { notOffered, pending } from '../../pending-api';
import { Thread } from './thread';
import type { ChatEngine, EngineEvents } from './types';

export class EmbeddedWindow implements ChatEngine {
  readonly kind = 'embed';
  private readonly thread = new Thread();
  private alive = false;

  constructor(
    private readonly instance: string,
    private readonly events: EngineEvents,
  ) {}

  state = this.thread.state;
  subscribe = this.thread.subscribe;

  start() {
    this.alive = true;
    void this.open();
  }

  destroy() {
    this.alive = false;
    this.thread.set({ frame: null });
  }

  reconnect() {
    void this.open();
  }

  private async open() {
    this.thread.set({ connection: { state: 'connecting' }, frame: null });
    try {
      const params = { path: { id: this.instance } };
      const { url } = await unwrap(pending.POST('/me/instances/{id}/embed-ticket', { params, body: {} }));
      if (this.alive) this.thread.set({ connection: { state: 'live' }, loaded: true, frame: url });
    } catch (error) {
      if (!this.alive) return;
      const status = error instanceof ApiError ? error.status : 0;
      this.events.onUnusable(
        notOffered(error) || status === 403 ? 'no-embed' : status >= 502 ? 'instance' : 'server',
        [],
      );
    }
  }

  // The window has its own composer, its own list and its own stop.
  send() {
    return;
  }
  retry() {
    return;
  }
  stop() {
    return;
  }
  regenerate() {
    return;
  }
  edit() {
    return;
  }
  newConversation() {
    return;
  }
  openConversation() {
    return;
  }
}
