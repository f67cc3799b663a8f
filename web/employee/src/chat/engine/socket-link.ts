// One connection to an instance's gateway: requests with answers, events, and the truth about how it stands. It comes back
// by itself after a break, later each time; what a break means is told by where it happened.
import { backoff } from './backoff';
import { hopOfClose } from './hops';
import type { Connection, Failure, Hop } from './types';

export interface Frame {
  type: string;
  id?: string;
  event?: string;
  ok?: boolean;
  payload?: unknown;
  error?: {
    code?: string;
    message?: string;
    retryable?: boolean;
    details?: { code?: string; requestId?: string };
  };
}

/** A way to the gateway. Over the platform's relay the handshake is done already; straight to it, it is ours to do. */
export interface Dialled {
  url: string;
  /** Answers the gateway's challenge with the parameters of `connect`. */
  introduce?: (challenge: { nonce: string; ts: number }) => Promise<object>;
  /** Has the device approved that the gateway does not know yet, by the id of its request. */
  approve?: (request: string) => Promise<void>;
  /** Another way remains when this one does not become live: told of it, the next dial takes that. */
  detour?: () => void;
}

/** What the gateway says of itself: the relay's first frame, or the answer to `connect`. */
export interface Hello {
  policy?: {
    maxPayload?: number;
    tickIntervalMs?: number;
    attachments?: { maxBytes?: number; maxImageBytes?: number };
  };
}

export class HopError extends Error {
  constructor(readonly hop: Hop) {
    super(hop);
  }
}

export class RequestError extends Error {
  constructor(
    readonly code: string,
    message: string,
    /** What a device that is not approved yet waits by. */
    readonly request?: string,
  ) {
    super(message);
  }
}

interface Waiter {
  resolve: (payload: unknown) => void;
  reject: (error: Error) => void;
}

export interface LinkParts {
  dial: () => Promise<Dialled>;
  open: (url: string) => WebSocket;
  /** Looks by plain HTTP why a socket did not open. */
  diagnose: (url: string) => Promise<Hop>;
  /** Called on every fresh connection; it is live when this has succeeded. */
  greet: () => Promise<void>;
  onHello: (hello: Hello) => void;
  onEvent: (event: string, payload: unknown) => void;
  onConnection: (connection: Connection) => void;
  /** It never worked, and waiting will not change that. */
  onHopeless: (hop: Hop) => void;
}

/** The gateway speaks at least at each tick; after so many of them without a word the connection is dead. */
const SILENT_TICKS = 2.5;
const TICK_MS = 30_000;
const ANSWER_MS = 30_000;
/** As long as a way that has another beside it may take to become live. */
const DETOUR_MS = 6000;
/** So often a first connection is tried before the page looks for another way. */
const FIRST_TRIES = 2;
const HOPELESS: ReadonlySet<Hop> = new Set(['no-upgrade', 'origin', 'crowded', 'instance', 'refused']);
/** Said by the relay itself for what it does not pass on. */
export const TOO_LONG = '4130';
export const NO_ANSWER = '5040';

export class SocketLink {
  private socket: WebSocket | null = null;
  private waiters = new Map<string, Waiter>();
  private sequence = 0;
  private failures = 0;
  private wasLive = false;
  /** Set until the connection under way is live. */
  private detour: (() => void) | undefined;
  private slow: ReturnType<typeof setTimeout> | undefined;
  private tickMs = TICK_MS;
  private maxPayload = Infinity;
  private alive = false;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private silence: ReturnType<typeof setTimeout> | undefined;
  /** Grows with each try; whatever an older try still says is of no interest. */
  private round = 0;

  constructor(private readonly parts: LinkParts) {}

  start() {
    this.alive = true;
    void this.connect();
  }

  end() {
    this.alive = false;
    this.round += 1;
    clearTimeout(this.timer);
    this.drop();
  }

  reconnect() {
    if (!this.alive) return;
    clearTimeout(this.timer);
    this.drop();
    void this.connect();
  }

  /** The browser has lost its network: the socket may look open for a long time yet. */
  lost() {
    if (!this.alive) return;
    clearTimeout(this.timer);
    this.giveUp();
  }

  request(method: string, params: object): Promise<unknown> {
    const { socket } = this;
    if (socket?.readyState !== 1) return Promise.reject(new RequestError('network', 'not connected'));
    this.sequence += 1;
    const id = String(this.sequence);
    const frame = JSON.stringify({ type: 'req', id, method, params });
    if (isLonger(frame, this.maxPayload))
      return Promise.reject(new RequestError(TOO_LONG, 'longer than the assistant takes'));
    return new Promise((resolve, reject) => {
      let late: ReturnType<typeof setTimeout>;
      const wait = () => {
        late = setTimeout(() => {
          // A large file takes its time to leave; what has not left cannot be answered.
          if (socket.bufferedAmount > 0) wait();
          else this.settle(id)?.reject(new RequestError(NO_ANSWER, 'no answer'));
        }, ANSWER_MS);
      };
      wait();
      this.waiters.set(id, {
        resolve: (payload) => {
          clearTimeout(late);
          resolve(payload);
        },
        reject: (error) => {
          clearTimeout(late);
          reject(error);
        },
      });
      socket.send(frame);
    });
  }

  private async connect() {
    this.round += 1;
    const { round } = this;
    this.parts.onConnection({ state: 'connecting' });
    let dialled: Dialled;
    try {
      dialled = await this.parts.dial();
    } catch (error) {
      if (round === this.round) this.broken(error instanceof HopError ? error.hop : 'server');
      return;
    }
    if (round !== this.round || !this.alive) return;
    this.detour = dialled.detour;
    let socket: WebSocket;
    try {
      socket = this.parts.open(dialled.url);
    } catch {
      // The browser itself forbids it.
      this.broken('refused');
      return;
    }
    this.socket = socket;
    if (dialled.detour !== undefined) this.slow = setTimeout(() => this.giveUp(), DETOUR_MS);
    let opened = false;
    socket.addEventListener('open', () => {
      opened = true;
      this.heard();
      if (dialled.introduce === undefined) this.greet(round);
    });
    socket.addEventListener('message', (message: MessageEvent) => {
      if (round !== this.round) return;
      this.heard();
      this.take(String(message.data), dialled, round);
    });
    socket.addEventListener('close', ({ code, reason }: CloseEvent) => {
      if (round !== this.round || !this.alive) return;
      const hop = hopOfClose(code, reason);
      // What was too long once is too long again.
      this.drop(hop === 'too-long' ? new RequestError(TOO_LONG, reason) : undefined);
      if (opened || this.detour !== undefined) this.broken(hop);
      else
        void this.parts.diagnose(dialled.url).then(
          (hop) => round === this.round && this.broken(hop),
          () => round === this.round && this.broken('server'),
        );
    });
  }

  private take(text: string, dialled: Dialled, round: number) {
    const frame = JSON.parse(text) as Frame;
    if (frame.type === 'res' && frame.id !== undefined) {
      const waiter = this.settle(frame.id);
      if (frame.ok) waiter?.resolve(frame.payload);
      else
        waiter?.reject(
          new RequestError(
            frame.error?.details?.code ?? frame.error?.code ?? '',
            frame.error?.message ?? '',
            frame.error?.details?.requestId,
          ),
        );
    } else if (frame.event === 'relay.hello') {
      this.hello(frame.payload as Hello);
    } else if (frame.event === 'connect.challenge' && dialled.introduce) {
      const proof = dialled.introduce(frame.payload as { nonce: string; ts: number });
      void this.introduce(proof, dialled.approve, round);
    } else if (frame.event !== undefined) this.parts.onEvent(frame.event, frame.payload);
  }

  private async introduce(proof: Promise<object>, approve: Dialled['approve'], round: number) {
    try {
      this.hello((await this.request('connect', await proof)) as Hello);
      this.greet(round);
    } catch (error) {
      if (round !== this.round) return;
      const refusal = error instanceof RequestError ? error : new RequestError('', '');
      if (refusal.code === 'PAIRING_REQUIRED' && refusal.request !== undefined && approve !== undefined) {
        await this.approved(approve(refusal.request));
        return;
      }
      const { code } = refusal;
      this.drop();
      this.broken(code.includes('ORIGIN') ? 'origin' : code === 'UNAVAILABLE' ? 'starting' : 'refused');
    }
  }

  /** The gateway closes the socket of a device that waits; once approved, it comes again the same way. */
  private async approved(approval: Promise<void>) {
    const way = this.detour;
    // What the close says is known already.
    this.round += 1;
    const waiting = this.round;
    clearTimeout(this.silence);
    clearTimeout(this.slow);
    const late = new Promise<never>((_, reject) =>
      setTimeout(() => reject(new Error('not approved in time')), DETOUR_MS),
    );
    try {
      await Promise.race([approval, late]);
    } catch {
      if (waiting !== this.round || !this.alive) return;
      this.drop();
      this.detour = way;
      this.broken('refused');
      return;
    }
    if (waiting !== this.round || !this.alive) return;
    this.drop();
    void this.connect();
  }

  private greet(round: number) {
    this.parts.greet().then(
      () => {
        if (round !== this.round) return;
        this.failures = 0;
        this.wasLive = true;
        this.detour = undefined;
        clearTimeout(this.slow);
        this.parts.onConnection({ state: 'live' });
      },
      (error: unknown) => {
        // A closed socket has told its reason by itself.
        if (round !== this.round || this.socket === null) return;
        const starting = error instanceof RequestError && error.code === 'UNAVAILABLE';
        this.drop();
        this.broken(starting ? 'starting' : 'instance');
      },
    );
  }

  private hello({ policy }: Hello) {
    this.tickMs = policy?.tickIntervalMs ?? TICK_MS;
    this.maxPayload = policy?.maxPayload ?? Infinity;
    this.parts.onHello({ policy });
  }

  private broken(hop: Hop) {
    if (!this.alive) return;
    const { detour } = this;
    this.detour = undefined;
    if (detour !== undefined && navigator.onLine) {
      detour();
      void this.connect();
      return;
    }
    this.failures += 1;
    const known = navigator.onLine ? hop : 'offline';
    if (known === 'not-yours') {
      // Neither waiting nor another way makes it one's own again.
      this.parts.onConnection({ state: 'readonly', hop: known });
      return;
    }
    if (!this.wasLive && HOPELESS.has(known) && this.failures >= FIRST_TRIES) {
      this.parts.onHopeless(known);
      return;
    }
    const delay = backoff(this.failures);
    this.parts.onConnection({ state: 'waiting', retryAt: Date.now() + delay, hop: known });
    this.timer = setTimeout(() => void this.connect(), delay);
  }

  private heard() {
    clearTimeout(this.silence);
    this.silence = setTimeout(() => this.giveUp(), this.tickMs * SILENT_TICKS);
  }

  private giveUp() {
    this.round += 1;
    this.drop();
    this.broken('server');
  }

  private drop(why = new RequestError('network', 'connection lost')) {
    clearTimeout(this.silence);
    clearTimeout(this.slow);
    const { socket } = this;
    this.socket = null;
    socket?.close();
    for (const waiter of this.waiters.values()) waiter.reject(why);
    this.waiters.clear();
  }

  private settle(id: string): Waiter | undefined {
    const waiter = this.waiters.get(id);
    this.waiters.delete(id);
    return waiter;
  }
}

export function failureOf(error: unknown): Failure {
  return error instanceof RequestError
    ? { code: error.code, msg: error.message }
    : { code: 'malformed', msg: String(error) };
}

function isLonger(text: string, bytes: number): boolean {
  // No character takes more than three bytes for each of its units.
  return text.length * 3 > bytes && new TextEncoder().encode(text).length > bytes;
}
