// A gateway to test against: speaks the frames that a real one was seen to speak, over a real socket.
import type { AddressInfo } from 'node:net';
import { WebSocketServer, type WebSocket } from 'ws';

interface Request {
  id: string;
  method: string;
  params: Record<string, unknown>;
}

/** An answer that says no. */
export class Refused {
  constructor(readonly error: object) {}
}

const NOT_ALLOWED = { code: 'FORBIDDEN', message: 'not allowed' };

/** A promise is an answer that comes later. */
export type Answer = (request: Request, socket: WebSocket) => unknown;

export class FakeGateway {
  readonly requests: Request[] = [];
  readonly sockets = new Set<WebSocket>();
  /** Closes every new connection at once, with this code and reason. */
  refuse: [number, string] | null = null;
  challenge = false;
  /** What the relay says first; null for one that says nothing. */
  hello: object | null = null;
  readonly answers = new Map<string, Answer>([
    ['chat.history', () => ({ messages: [] })],
    ['sessions.list', () => ({ sessions: [] })],
    ['sessions.patch', () => ({ ok: true })],
    ['chat.send', ({ params }) => ({ runId: params.idempotencyKey, status: 'started' })],
    ['chat.abort', () => ({ ok: true, aborted: true })],
    ['connect', () => ({ type: 'hello-ok', protocol: 4 })],
  ]);

  private constructor(private readonly server: WebSocketServer) {
    server.on('connection', (socket) => this.welcome(socket));
  }

  static async start(): Promise<FakeGateway> {
    const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
    await new Promise((resolve) => server.once('listening', resolve));
    return new FakeGateway(server);
  }

  get url(): string {
    return `ws://127.0.0.1:${(this.server.address() as AddressInfo).port}/`;
  }

  say(event: string, payload: object) {
    for (const socket of this.sockets) socket.send(JSON.stringify({ type: 'event', event, payload }));
  }

  /** Ends all connections as a broken network does: without a word. */
  cut() {
    for (const socket of this.sockets) socket.terminate();
  }

  close(code: number, reason: string) {
    for (const socket of this.sockets) socket.close(code, reason);
  }

  async stop() {
    this.cut();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private welcome(socket: WebSocket) {
    if (this.refuse !== null) {
      socket.close(...this.refuse);
      return;
    }
    this.sockets.add(socket);
    socket.on('close', () => this.sockets.delete(socket));
    if (this.hello !== null)
      socket.send(JSON.stringify({ type: 'event', event: 'relay.hello', payload: this.hello }));
    if (this.challenge)
      socket.send(
        JSON.stringify({ type: 'event', event: 'connect.challenge', payload: { nonce: 'n', ts: 1 } }),
      );
    socket.on('message', (data: Buffer) => {
      const request = JSON.parse(data.toString()) as Request;
      this.requests.push(request);
      void this.answer(request, socket);
    });
  }

  private async answer(request: Request, socket: WebSocket) {
    const payload = await this.answers.get(request.method)?.(request, socket);
    if (socket.readyState !== 1) return;
    const refused = payload instanceof Refused ? payload.error : NOT_ALLOWED;
    const frame =
      payload === undefined || payload instanceof Refused
        ? { type: 'res', id: request.id, ok: false, error: refused }
        : { type: 'res', id: request.id, ok: true, payload };
    socket.send(JSON.stringify(frame));
  }
}
