// The engine that shows the instance's own chat window in a frame, on the embed origin. What is said there is between the
// person and the instance: this page sees nothing of it.
import { ApiError, unwrap } from '@tidepool/shared/api/envelope';
import { api } from '../../api';
import { Thread } from './thread';
import type { ChatEngine, EngineEvents } from './types';

/** The address leads in for an hour: from here on it is exchanged when nobody is writing in the window, … */
const RENEW_MS = 50 * 60_000;
/** … looked at so often, … */
const LOOK_MS = 30_000;
/** … and here in any case: a window that has lost its way in is worth less than what is half written in it. */
const LATEST_MS = 58 * 60_000;

export class EmbeddedWindow implements ChatEngine {
  readonly kind = 'embed';
  private readonly thread = new Thread();
  private alive = false;
  private opened = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;

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
    clearTimeout(this.timer);
    this.thread.set({ frame: null });
  }

  reconnect() {
    void this.open();
  }

  private async open() {
    this.thread.set({ connection: { state: 'connecting' }, frame: null });
    try {
      await this.load();
    } catch (error) {
      if (!this.alive) return;
      const status = error instanceof ApiError ? error.status : 0;
      if (status === 404) this.thread.set({ connection: { state: 'readonly', hop: 'not-yours' } });
      else this.events.onUnusable(status === 403 ? 'no-embed' : status >= 502 ? 'instance' : 'server');
    }
  }

  private async load() {
    const params = { path: { id: this.instance } };
    const { url } = await unwrap(api.POST('/me/instances/{id}/embed-ticket', { params }));
    if (!this.alive) return;
    this.opened = Date.now();
    this.thread.set({ connection: { state: 'live' }, loaded: true, frame: url });
    this.later(RENEW_MS);
  }

  private later(delay: number) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.renew(), delay);
  }

  private async renew() {
    // A page that slept finds its timers late, and its address too old.
    const latest = Date.now() - this.opened >= LATEST_MS;
    const writing = document.visibilityState === 'visible' && document.activeElement?.tagName === 'IFRAME';
    if (writing && !latest) {
      this.later(LOOK_MS);
      return;
    }
    try {
      await this.load();
    } catch {
      // What is open stays open; the way in is asked for again.
      if (this.alive) this.later(LOOK_MS);
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
    return true;
  }
  edit() {
    return;
  }
  loadOlder() {
    return;
  }
  newConversation() {
    return;
  }
  openConversation() {
    return;
  }
}
