// The engine over the instance gateway's WebSocket: the assistant itself, with its tools, memory and sessions. After a
// break or a reload the running reply is picked up where it is; a prompt sent twice never runs twice.
import { newId } from './ids';
import {
  conversationsOf,
  MAIN_SESSION,
  messagesOf,
  MOST_HISTORY,
  olderOf,
  replyId,
  textOf,
  wireFile,
  withTool,
  type WireAgent,
  type WireChat,
  type WireHistory,
  type WireSessions,
} from './openclaw';
import type { Costs } from './request-costs';
import { RequestError, SocketLink, type Hello, type LinkParts } from './socket-link';
import { Thread } from './thread';
import {
  isRunning,
  type Attachment,
  type AttachmentPolicy,
  type ChatEngine,
  type EngineEvents,
  type Failure,
  type Message,
  type Older,
} from './types';

const HISTORY_SIZE = 200;
/** Enough for a reply without tools and its prompt. */
const LAST_SIZE = 4;
const SESSIONS_SIZE = 60;
const TITLE_LENGTH = 60;
/** A request is in the log a moment after its answer. */
const COST_AFTER_MS = 2500;

export class GatewaySocket implements ChatEngine {
  readonly kind = 'socket';
  private readonly thread = new Thread();
  private readonly link: SocketLink;
  /** What this connection takes along; known before it is live. */
  private policy: AttachmentPolicy | null = null;
  /** The files of prompts that were not taken yet, by the prompt's id. */
  private readonly files = new Map<string, readonly Attachment[]>();
  /** What replies cost, by their ids, as far as it is known. */
  private readonly priced = new Map<string, number>();
  private pricing: ReturnType<typeof setTimeout> | undefined;
  /** As much of the open conversation as is asked for. */
  private depth = HISTORY_SIZE;

  constructor(
    ways: Pick<LinkParts, 'dial' | 'open' | 'diagnose'>,
    private readonly events: EngineEvents,
    private readonly costs: Costs,
  ) {
    this.link = new SocketLink({
      ...ways,
      greet: async () => {
        await this.catchUp();
        this.thread.set({ attachable: this.policy });
      },
      onHello: (hello) => (this.policy = policyOf(hello)),
      onEvent: (event, payload) => this.take(event, payload),
      onConnection: (connection) => this.thread.set({ connection }),
      onHopeless: (hop) => {
        const unsent = this.state().messages.filter((message) => message.status === 'queued');
        this.events.onUnusable(
          hop,
          unsent.map(({ text }) => text),
        );
      },
    });
  }

  state = this.thread.state;
  subscribe = this.thread.subscribe;

  start() {
    window.addEventListener('online', this.reconnect);
    window.addEventListener('offline', this.lost);
    this.link.start();
  }

  destroy() {
    window.removeEventListener('online', this.reconnect);
    window.removeEventListener('offline', this.lost);
    clearTimeout(this.pricing);
    this.link.end();
  }

  reconnect = () => this.link.reconnect();

  private lost = () => this.link.lost();

  send(text: string, files: readonly Attachment[] = []) {
    const prompt: Message = {
      id: newId(),
      role: 'user',
      text,
      at: Date.now(),
      status: 'queued',
      ...(files.length > 0 && { files: files.map(({ name, type, size }) => ({ name, type, size })) }),
    };
    if (files.length > 0) this.files.set(prompt.id, files);
    this.thread.add(prompt);
    if (this.state().connection.state === 'live') void this.ask(prompt);
  }

  retry(id: string) {
    const prompt = this.thread.find(id);
    if (prompt?.role !== 'user') return;
    this.thread.patch(id, { status: 'queued', failure: undefined });
    if (this.state().connection.state === 'live') void this.ask(prompt);
    else this.reconnect();
  }

  stop() {
    const run = this.running();
    if (run !== undefined)
      void this.link
        .request('chat.abort', { sessionKey: this.sessionKey(), runId: run.run })
        .catch(() => null);
  }

  /** The gateway keeps what was said: asking again is saying it again. */
  regenerate() {
    const prompt = this.thread.lastPrompt();
    if (prompt !== undefined && !isRunning(this.state())) this.send(prompt.text);
  }

  edit(_id: string, text: string, files?: readonly Attachment[]) {
    if (isRunning(this.state())) this.stop();
    this.send(text, files);
  }

  loadOlder() {
    const { older } = this.state();
    if (older !== 'more' && older !== 'failed') return;
    this.thread.set({ older: 'loading' });
    const sessionKey = this.sessionKey();
    this.link.request('chat.history', { sessionKey, limit: MOST_HISTORY }).then(
      (history) => {
        if (sessionKey === this.sessionKey()) this.takeOlder(history as WireHistory);
      },
      () => {
        if (sessionKey === this.sessionKey()) this.thread.set({ older: 'failed' });
      },
    );
  }

  newConversation() {
    void this.link.request('sessions.create', {}).then(
      (created) => this.show((created as { key: string }).key),
      () => null,
    );
  }

  openConversation(key: string | null) {
    if (key !== this.state().conversation) this.show(key);
  }

  private show(key: string | null) {
    this.depth = HISTORY_SIZE;
    this.thread.set({ conversation: key, messages: [], older: 'nothing', loaded: false });
    void this.catchUp().catch(() => null);
  }

  private sessionKey(): string {
    return this.state().conversation ?? MAIN_SESSION;
  }

  private running(): Message | undefined {
    const last = this.state().messages.at(-1);
    return last?.status === 'streaming' ? last : undefined;
  }

  /** What the gateway knows, then what it does not know yet. */
  private async catchUp() {
    const sessionKey = this.sessionKey();
    const left = this.running();
    const history = (await this.link.request('chat.history', {
      sessionKey,
      limit: this.depth,
    })) as WireHistory;
    if (sessionKey !== this.sessionKey()) return;
    const known = messagesOf(history);
    const ids = new Set(known.map((message) => message.id));
    const open = this.state().messages.filter(
      (message) => message.role === 'user' && message.status !== 'sent',
    );
    const unsent = open.filter((message) => !ids.has(message.id));
    // It was taken, only the answer to it got lost.
    for (const prompt of open) if (ids.has(prompt.id)) this.events.onPrompt(prompt, sessionKey);
    this.thread.set({ messages: [...known, ...unsent], older: this.olderThan(history), loaded: true });
    this.price(0);
    // A reply that was completed while nobody listened is as final as one that was watched.
    const completed = known.at(-1);
    if (left && completed?.role === 'assistant' && completed.status === 'done' && completed.text !== '')
      this.events.onFinal({ ...completed, run: left.run }, sessionKey);
    for (const prompt of unsent) if (prompt.status !== 'failed') void this.ask(prompt);
    void this.listSessions();
  }

  /** As many as were asked for may not be all. */
  private olderThan(history: WireHistory): Older {
    const whole = (history.messages?.length ?? 0) < this.depth;
    if (whole) return this.depth === HISTORY_SIZE ? 'nothing' : 'beginning';
    return this.depth === MOST_HISTORY ? 'history' : 'more';
  }

  /** What is shown stays as it is: a reply may be growing at its end. */
  private takeOlder(history: WireHistory) {
    this.depth = MOST_HISTORY;
    const { messages } = this.state();
    const { older, instead } = olderOf(messagesOf({ messages: history.messages }), messages);
    this.thread.addBefore(older, this.olderThan(history), instead);
    this.price(0);
  }

  private async listSessions() {
    try {
      const list = (await this.link.request('sessions.list', { limit: SESSIONS_SIZE })) as WireSessions;
      const conversations = conversationsOf(list);
      const open = this.state().conversation ?? MAIN_SESSION;
      this.thread.set({
        conversations,
        // The first conversation has a name once it exists.
        conversation: conversations.some((one) => one.key === open) ? open : this.state().conversation,
      });
    } catch {
      return;
    }
  }

  private async ask(prompt: Message) {
    const sessionKey = this.sessionKey();
    const files = this.files.get(prompt.id);
    this.thread.patch(prompt.id, { status: 'sending' });
    try {
      const params = {
        sessionKey,
        message: prompt.text,
        idempotencyKey: prompt.id,
        ...(files !== undefined && { attachments: files.map(wireFile) }),
      };
      const { runId } = (await this.link.request('chat.send', params)) as { runId: string };
      this.files.delete(prompt.id);
      this.thread.patch(prompt.id, { status: 'sent' });
      this.events.onPrompt(prompt, sessionKey);
      this.reply(runId);
      this.name(sessionKey, prompt.text);
    } catch (error) {
      const failure = failureOf(error);
      // A lost connection has not lost the prompt: it goes out again with the same key.
      this.thread.patch(
        prompt.id,
        failure.code === 'network' ? { status: 'queued' } : { status: 'failed', failure },
      );
    }
  }

  /** A conversation is called after its first words. */
  private name(key: string, text: string) {
    const first = this.state().messages.filter((message) => message.role === 'user').length === 1;
    if (!first || key === MAIN_SESSION) return;
    const label = Array.from(text.split('\n')[0] ?? '')
      .slice(0, TITLE_LENGTH)
      .join('');
    void this.link.request('sessions.patch', { key, label }).then(
      () => this.listSessions(),
      () => null,
    );
  }

  /** The reply of a run; made when the first news of it comes. */
  private reply(runId: string): Message {
    const id = replyId(runId);
    const known = this.thread.find(id);
    if (known !== undefined) return known;
    const made: Message = {
      id,
      role: 'assistant',
      text: '',
      at: Date.now(),
      status: 'streaming',
      run: runId,
    };
    this.thread.add(made);
    return made;
  }

  private take(event: string, payload: unknown) {
    const { sessionKey, runId } = payload as { sessionKey?: string; runId?: string };
    // An operator hears of every session of the gateway.
    if (runId === undefined || sessionKey !== this.sessionKey()) return;
    if (event === 'chat') this.takeChat(runId, payload as WireChat);
    if (event === 'agent') this.takeAgent(runId, payload as WireAgent);
  }

  private takeChat(runId: string, chat: WireChat) {
    const reply = this.reply(runId);
    const text = chat.message ? textOf(chat.message.content) : reply.text;
    switch (chat.state) {
      case 'status':
        this.thread.patch(reply.id, { phase: chat.retry ? 'retrying' : chat.phase });
        return;
      case 'delta':
        this.thread.patch(reply.id, { text, status: 'streaming' });
        return;
      case 'aborted':
        this.thread.patch(reply.id, { text, status: 'stopped', latencyMs: Date.now() - reply.at });
        break;
      case 'error':
        this.thread.patch(reply.id, {
          text,
          status: 'broken',
          failure: { code: 'assistant', msg: chat.errorMessage ?? '' },
        });
        return;
      case 'final':
        this.thread.patch(reply.id, {
          text,
          status: 'done',
          latencyMs: Date.now() - reply.at,
          tools: reply.tools?.map((tool) => (tool.state === 'running' ? { ...tool, state: 'done' } : tool)),
        });
        break;
      default:
        return;
    }
    void this.settle(reply.id);
  }

  private takeAgent(runId: string, { stream, data }: WireAgent) {
    if (data === undefined) return;
    if (stream === 'tool') {
      const reply = this.reply(runId);
      this.thread.patch(reply.id, { tools: withTool(reply.tools ?? [], data) });
    } else if ((stream === 'thinking' || stream === 'reasoning') && data.text) {
      this.thread.patch(this.reply(runId).id, { reasoning: data.text });
    }
  }

  /** Looks up, a moment later, what the replies cost of which that is not known yet. */
  private price(after: number) {
    clearTimeout(this.pricing);
    this.pricing = setTimeout(() => {
      const open = this.state().messages.flatMap(({ id, at, usage }) =>
        usage?.cost === null ? [{ id, at, usage }] : [],
      );
      const priced = (costs: ReadonlyMap<string, number>) => {
        for (const { id, usage } of open) {
          const cost = costs.get(id);
          if (cost === undefined) continue;
          this.priced.set(id, cost);
          this.thread.patch(id, { usage: { ...usage, cost } });
        }
      };
      priced(this.priced);
      if (open.some(({ id }) => !this.priced.has(id))) this.costs(open).then(priced, () => null);
    }, after);
  }

  /** Whole, with all requests of its tools: what stands at the very beginning of a reading may have been cut. */
  private async lastReply(sessionKey: string): Promise<Message | undefined> {
    let last: Message | undefined;
    for (const limit of [LAST_SIZE, HISTORY_SIZE]) {
      const { messages } = (await this.link.request('chat.history', { sessionKey, limit })) as WireHistory;
      const known = messagesOf({ messages });
      const at = known.findLastIndex((message) => message.role === 'assistant');
      last = known[at];
      if (at > 0 || (messages?.length ?? 0) < limit) break;
    }
    return last;
  }

  /** The end of a reply: what it used stands in the history, and then it can be saved whole. */
  private async settle(id: string) {
    const session = this.sessionKey();
    try {
      const last = await this.lastReply(session);
      if (last?.usage) this.thread.patch(id, { usage: last.usage, model: last.model });
      this.price(COST_AFTER_MS);
    } catch {
      // Numbers are a kindness; the reply is there without them.
    }
    const reply = this.thread.find(id);
    if (reply && reply.text !== '') this.events.onFinal(reply, session);
    void this.listSessions();
  }
}

function policyOf({ policy }: Hello): AttachmentPolicy | null {
  const { maxBytes = 0, maxImageBytes = maxBytes } = policy?.attachments ?? {};
  return maxBytes > 0 ? { maxBytes, maxImageBytes, maxPayload: policy?.maxPayload ?? maxBytes } : null;
}

function failureOf(error: unknown): Failure {
  return error instanceof RequestError
    ? { code: error.code, msg: error.message }
    : { code: 'malformed', msg: String(error) };
}
