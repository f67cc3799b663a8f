// The engine over the instance gateway's WebSocket: the assistant itself, with its tools, memory and sessions. After a
// break or a reload the running reply is picked up where it is; a prompt sent twice never runs twice.
import { newId } from './ids';
import {
  isIdle,
  MAIN_SESSION,
  messagesOf,
  MOST_HISTORY,
  NEW_SESSION,
  olderOf,
  replyId,
  replyOf,
  textOf,
  wireFile,
  withTool,
  type WireAgent,
  type WireChat,
  type WireHistory,
} from './openclaw';
import { Pricing } from './pricing';
import type { Costs } from './request-costs';
import { Sessions } from './sessions';
import { failureOf, NO_ANSWER, SocketLink, TOO_LONG, type Hello, type LinkParts } from './socket-link';
import { Thread } from './thread';
import {
  isRunning,
  UNSURE,
  type Attachment,
  type AttachmentPolicy,
  type ChatEngine,
  type EngineEvents,
  type Failure,
  type Message,
  type Older,
} from './types';
import { withOpen, type Prompt, type Unfinished } from './unfinished';

const HISTORY_SIZE = 200;
/** Enough for a reply without tools and its prompt. */
const LAST_SIZE = 4;
/** A request is in the log a moment after its answer. */
const COST_AFTER_MS = 2500;

export class GatewaySocket implements ChatEngine {
  readonly kind = 'socket';
  private readonly thread = new Thread();
  private readonly link: SocketLink;
  /** What this connection takes along; known before it is live. */
  private policy: AttachmentPolicy | null = null;
  private readonly pricing: Pricing;
  /** As much of the open conversation as is asked for. */
  private depth = HISTORY_SIZE;
  private readonly sessions: Sessions;
  /** Prompts to which nobody wants a reply any more, although they may have arrived. */
  private readonly unwanted = new Set<string>();

  constructor(
    ways: Pick<LinkParts, 'dial' | 'open' | 'diagnose'>,
    private readonly events: EngineEvents,
    costs: Costs,
    private readonly unfinished: Unfinished,
  ) {
    this.pricing = new Pricing(this.thread, costs);
    this.link = new SocketLink({
      ...ways,
      greet: () => this.greet(),
      onHello: (hello) => (this.policy = policyOf(hello)),
      onEvent: (event, payload) => this.take(event, payload),
      onConnection: (connection) => this.thread.set({ connection }),
      onHopeless: (hop) => this.events.onUnusable(hop),
    });
    this.sessions = new Sessions(this.link, this.thread, unfinished);
    this.thread.set({ messages: this.open(MAIN_SESSION) });
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
    this.pricing.end();
    this.leave();
    this.link.end();
  }

  reconnect = () => this.link.reconnect();

  private lost = () => this.link.lost();

  send(text: string, files: readonly Attachment[] = []) {
    const message: Message = {
      id: newId(),
      role: 'user',
      text,
      at: Date.now(),
      status: 'queued',
      ...(files.length > 0 && { files: files.map(({ name, type, size }) => ({ name, type, size })) }),
    };
    const prompt: Prompt = { message, session: this.sessionKey(), files, tried: false };
    this.unfinished.add(prompt);
    this.thread.add(message);
    if (this.state().connection.state === 'live') void this.ask(prompt);
  }

  retry(id: string) {
    const prompt = this.unfinished.prompt(id);
    if (prompt === undefined) return;
    this.unwanted.delete(id);
    this.change(id, { status: 'queued', failure: undefined });
    if (this.state().connection.state === 'live') void this.ask(prompt);
    else this.reconnect();
  }

  stop() {
    const run = this.running()?.run;
    if (run !== undefined) {
      this.abort(this.sessionKey(), run);
      return;
    }
    // What is on its way has no reply yet that could be ended.
    for (const { id, status } of this.state().messages) if (status === 'sending') this.unwanted.add(id);
  }

  private abort(sessionKey: string, runId: string) {
    void this.link.request('chat.abort', { sessionKey, runId }).catch(() => null);
  }

  /** The gateway keeps what was said: asking again is saying it again. Of files it tells names and sizes alone. */
  regenerate() {
    const prompt = this.thread.lastPrompt();
    if (prompt === undefined || isRunning(this.state())) return true;
    const files = this.unfinished.filesOf(prompt.id);
    if (files.length < (prompt.files?.length ?? 0)) return false;
    this.send(prompt.text, files);
    return true;
  }

  /** What the assistant does not have is replaced; what it has been told is said anew. */
  edit(id: string, text: string, files: readonly Attachment[] = []) {
    if (isRunning(this.state())) this.stop();
    const prompt = this.unfinished.prompt(id);
    let goes = files;
    if (prompt?.message.status === 'sending') this.unwanted.add(id);
    if (prompt !== undefined && isMissing(prompt)) {
      this.unfinished.drop(id);
      this.thread.remove(id);
      // Its files go along, unless they were what was too much.
      const wasTooLong = prompt.message.failure?.code === TOO_LONG;
      if (goes.length === 0 && !wasTooLong) goes = prompt.files;
    }
    this.send(text, goes);
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
    const key = NEW_SESSION + newId();
    // It is open at once: what is typed from now on is meant for it.
    this.unfinished.begin(key);
    this.show(key);
    if (this.state().connection.state === 'live') void this.sessions.make(key).catch(() => null);
  }

  openConversation(key: string | null) {
    if (key !== this.state().conversation) this.show(key);
  }

  private show(key: string | null) {
    this.depth = HISTORY_SIZE;
    this.leave();
    const messages = this.open(key ?? MAIN_SESSION);
    const unmade = key !== null && this.unfinished.isUnmade(key);
    this.thread.set({ conversation: key, messages, older: 'nothing', loaded: unmade });
    if (!unmade) void this.catchUp().catch(() => null);
  }

  /** Replies go on being written when nobody looks. */
  private leave() {
    for (const message of this.state().messages) {
      const run = message.status === 'streaming' ? this.unfinished.run(message.run ?? '') : undefined;
      if (run !== undefined) run.reply = message;
    }
  }

  private sessionKey(): string {
    return this.state().conversation ?? MAIN_SESSION;
  }

  private running(): Message | undefined {
    return this.state().messages.findLast(({ status }) => status === 'streaming');
  }

  private async history(sessionKey: string, limit: number): Promise<WireHistory> {
    if (this.unfinished.isUnmade(sessionKey)) return { messages: [] };
    return (await this.link.request('chat.history', { sessionKey, limit })) as WireHistory;
  }

  private async greet() {
    // Another conversation may be opened while one is read: it is live with the one that is open.
    for (let read: string | null = null; read !== this.sessionKey();) {
      read = this.sessionKey();
      await this.catchUp();
    }
    this.thread.set({ attachable: this.policy });
    void this.catchUpElsewhere();
  }

  /** What the gateway knows, then what it does not know yet. */
  private async catchUp() {
    const sessionKey = this.sessionKey();
    const history = await this.history(sessionKey, this.depth);
    if (sessionKey !== this.sessionKey()) return;
    const known = messagesOf(history);
    this.compare(sessionKey, known, history);
    const messages = withOpen(known, this.open(sessionKey));
    this.thread.set({ messages, older: this.olderThan(history), loaded: true });
    this.pricing.look(0);
    this.askWaiting(sessionKey, known, isWhole(history, this.depth));
    void this.sessions.list();
  }

  /** What was written in other conversations than the open one, and what was answered there. */
  private async catchUpElsewhere() {
    for (const session of this.unfinished.sessions()) {
      if (session === this.sessionKey()) continue;
      const history = await this.history(session, HISTORY_SIZE).catch(() => null);
      if (history === null) continue;
      const known = messagesOf(history);
      this.compare(session, known, history);
      this.askWaiting(session, known, isWhole(history, HISTORY_SIZE));
    }
  }

  /** What a history says of prompts to which no answer was heard, and of runs whose end was not. */
  private compare(session: string, known: readonly Message[], history: WireHistory) {
    const ids = new Set(known.map(({ id }) => id));
    for (const prompt of this.unfinished.promptsOf(session)) {
      const { id } = prompt.message;
      if (!ids.has(id)) continue;
      // It was taken, if only the answer to that got lost.
      this.taken(prompt, id);
      this.unfinished.drop(id);
    }
    const inFlight = history.inFlightRun?.runId;
    if (inFlight !== undefined && session === this.sessionKey())
      this.unfinished.begun({ id: inFlight, session, asked: false });
    // What is saved first stays: while anything runs, only the end of a reply tells that it is whole.
    if (!isIdle(history)) return;
    for (const run of this.unfinished.runsOf(session)) {
      const reply = replyOf(known, run);
      if (reply === undefined || reply?.calling) continue;
      this.unfinished.ended(run.id);
      // Completed while nobody listened, it is as final as one that was watched.
      if (reply !== null && reply.text !== '') this.events.onFinal({ ...reply, run: run.id }, session);
    }
  }

  private askWaiting(session: string, known: readonly Message[], whole: boolean) {
    const prompts = this.unfinished.promptsOf(session);
    const first = prompts.length === 1 && !known.some(({ role }) => role === 'user');
    const since = whole ? 0 : (known[0]?.at ?? 0);
    for (const prompt of prompts) {
      const { id, status, at } = prompt.message;
      if (status !== 'queued') continue;
      if (this.unfinished.isGone(prompt)) {
        this.unfinished.drop(id);
        this.thread.remove(id);
      } else if (prompt.tried && at < since) {
        // It may stand before what was read, and a key is not known to the assistant for ever.
        this.change(id, { status: 'failed', failure: UNSURE });
      } else void this.ask(prompt, first);
    }
  }

  /** The prompts of a conversation that the gateway has not written down. */
  private open(session: string): Message[] {
    return this.unfinished.promptsOf(session).map(({ message }) => message);
  }

  private change(id: string, change: Partial<Message>) {
    this.unfinished.change(id, change);
    this.thread.patch(id, change);
  }

  private taken({ message, session }: Prompt, run: string) {
    // Its answer and the history may both say so.
    if (!this.unfinished.taken(message.id, run)) return;
    this.unfinished.begun({ id: run, session, asked: run === message.id });
    this.thread.patch(message.id, { status: 'sent', failure: undefined });
    this.events.onPrompt(message, session);
    if (this.unwanted.delete(message.id)) this.abort(session, run);
  }

  private olderThan(history: WireHistory): Older {
    if (isWhole(history, this.depth)) return this.depth === HISTORY_SIZE ? 'nothing' : 'beginning';
    return this.depth === MOST_HISTORY ? 'history' : 'more';
  }

  /** What is shown stays as it is: a reply may be growing at its end. */
  private takeOlder(history: WireHistory) {
    this.depth = MOST_HISTORY;
    const { messages } = this.state();
    const { older, instead } = olderOf(messagesOf({ messages: history.messages }), messages);
    this.thread.addBefore(older, this.olderThan(history), instead);
    this.pricing.look(0);
  }

  private async ask(prompt: Prompt, first = this.isFirst(prompt.session)) {
    const { session, files } = prompt;
    const { id, text } = prompt.message;
    this.change(id, { status: 'sending' });
    try {
      if (this.unfinished.isUnmade(session)) await this.sessions.make(session);
      this.unfinished.trying(prompt);
      const params = {
        sessionKey: session,
        message: text,
        idempotencyKey: id,
        ...(files.length > 0 && { attachments: files.map(wireFile) }),
      };
      const { runId } = (await this.link.request('chat.send', params)) as { runId: string };
      this.taken(prompt, runId);
      // Another conversation may have been opened meanwhile.
      if (session === this.sessionKey()) this.reply(runId);
      if (first ?? this.isFirst(session)) this.sessions.name(session, text);
    } catch (error) {
      // Its reply may have told meanwhile that it was taken.
      if (this.unfinished.prompt(id)?.message.status === 'sending')
        this.change(id, notTaken(failureOf(error)));
    }
  }

  /** Whether one prompt is all that a conversation has; not known of one that is not open, or not read yet. */
  private isFirst(session: string): boolean | undefined {
    const { loaded, messages } = this.state();
    if (session !== this.sessionKey() || !loaded) return undefined;
    return messages.filter(({ role }) => role === 'user').length === 1;
  }

  /** The reply of a run; made when the first news of it comes. */
  private reply(runId: string): Message {
    const known = this.thread.find(replyId(runId));
    if (known !== undefined) return known;
    const made = begunReply(runId);
    this.thread.add(made);
    this.unfinished.begun({ id: runId, session: this.sessionKey(), asked: false });
    return made;
  }

  private take(event: string, payload: unknown) {
    const { sessionKey, runId } = payload as { sessionKey?: string; runId?: string };
    if (runId === undefined) return;
    // A reply says as well as the answer, which may be late or lost, that its prompt was taken.
    const prompt = this.unfinished.prompt(runId);
    if (prompt !== undefined) this.taken(prompt, runId);
    if (sessionKey !== this.sessionKey()) {
      if (event === 'chat') this.takeElsewhere(runId, payload as WireChat);
      return;
    }
    if (event === 'chat') this.takeChat(runId, payload as WireChat);
    if (event === 'agent') this.takeAgent(runId, payload as WireAgent);
  }

  /** An operator hears of every session of the gateway: what was not seen to begin here is somebody else's. */
  private takeElsewhere(runId: string, { state, message }: WireChat) {
    const run = this.unfinished.run(runId);
    if (run === undefined) return;
    if (state === 'error') this.unfinished.ended(runId);
    if (state !== 'final' && state !== 'aborted') return;
    const reply = run.reply ?? begunReply(runId);
    void this.settle(run.session, {
      ...reply,
      text: message ? textOf(message.content) : reply.text,
      status: state === 'final' ? 'done' : 'stopped',
      latencyMs: Date.now() - reply.at,
    });
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
        this.unfinished.ended(runId);
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
    const ended = this.thread.find(reply.id);
    if (ended !== undefined) void this.settle(this.sessionKey(), ended);
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
  private async settle(session: string, reply: Message) {
    if (reply.run !== undefined) this.unfinished.ended(reply.run);
    let used: Partial<Message> = {};
    try {
      const last = await this.lastReply(session);
      if (last?.usage) used = { usage: last.usage, model: last.model };
      this.thread.patch(reply.id, used);
      this.pricing.look(COST_AFTER_MS);
    } catch {
      // Numbers are a kindness; the reply is there without them.
    }
    if (reply.text !== '') this.events.onFinal({ ...reply, ...used }, session);
    void this.sessions.list();
  }
}

function begunReply(run: string): Message {
  return { id: replyId(run), role: 'assistant', text: '', at: Date.now(), status: 'streaming', run };
}

/** As many as were asked for may not be all. */
function isWhole({ messages }: WireHistory, limit: number): boolean {
  return (messages?.length ?? 0) < limit;
}

/** Whether the assistant has not got it: it was refused, or never went out. */
function isMissing({ message: { status, failure }, tried }: Prompt): boolean {
  if (status === 'failed') return failure?.code !== UNSURE.code;
  return status === 'queued' && !tried;
}

function notTaken(failure: Failure): Partial<Message> {
  // A lost connection has not lost the prompt: it goes out again with the same key.
  if (failure.code === 'network') return { status: 'queued' };
  return { status: 'failed', failure: failure.code === NO_ANSWER ? UNSURE : failure };
}

function policyOf({ policy }: Hello): AttachmentPolicy | null {
  const { maxBytes = 0, maxImageBytes = maxBytes } = policy?.attachments ?? {};
  return maxBytes > 0 ? { maxBytes, maxImageBytes, maxPayload: policy?.maxPayload ?? maxBytes } : null;
}
