// The engine over POST /me/chat: each prompt goes out with the conversation so far, the reply streams back. It talks to
// the instance's model, so it works wherever the platform itself is reached.
import { ApiError } from '@tidepool/shared/api/envelope';
import { titleOf, type LocalThreads } from '../local-threads';
import { backoff } from './backoff';
import { HISTORY_SIZE, type GatewayApi, type Turn } from './gateway-api';
import { newId } from './ids';
import { ReplyWriter } from './reply-writer';
import { olderPage, storedMessages } from './stored';
import { Thread } from './thread';
import {
  isRunning,
  NO_FILES,
  UNSURE,
  type ChatEngine,
  type Conversation,
  type EngineEvents,
  type Failure,
  type Message,
  type Older,
} from './types';
import type { Prompt, Unfinished } from './unfinished';

/** As much of the conversation as goes along with a prompt. */
const MOST_TURNS = 40;
const MOST_CHARACTERS = 200_000;
const COST_AFTER_MS = 2500;
const LEAVING_MS = 250;

interface Run {
  prompt: string;
  reply: string;
  abort: AbortController;
}

export class GatewayChat implements ChatEngine {
  readonly kind = 'gateway';
  private readonly thread = new Thread();
  private run: Run | null = null;
  private failures = 0;
  private timers = new Set<ReturnType<typeof setTimeout>>();
  private alive = false;
  /** The page is about to go: what breaks off now does so because of that. */
  private hidden = false;
  /** The thread could be written down as it was then: not every browser has room. */
  private stored = false;
  /** The server answered while the browser said that there is no network: it is not to be believed. */
  private reached = false;
  /** It is known which conversation is open: before that nothing goes out. */
  private begun = false;
  /** Somebody has opened one before that was known. */
  private chosen = false;
  /** What the server lists beside what this browser knows. */
  private elsewhere: Conversation[] = [];
  /** The server's id of the oldest message that was asked of it; what this browser kept has ids of its own. */
  private oldest: string | undefined;
  /** The messages as they were read: what did not change here is not written back, as another tab may have gone on with it. */
  private read: readonly Message[] | null = null;

  constructor(
    private readonly api: GatewayApi,
    private readonly local: LocalThreads,
    private readonly events: EngineEvents,
    private readonly unfinished: Unfinished,
  ) {}

  state = this.thread.state;
  subscribe = this.thread.subscribe;

  start() {
    this.alive = true;
    this.chosen = false;
    window.addEventListener('online', this.reconnect);
    window.addEventListener('offline', this.lost);
    window.addEventListener('pagehide', this.hide);
    window.addEventListener('pageshow', this.show);
    this.thread.set({ connection: { state: 'live' }, conversations: this.conversations() });
    if (!navigator.onLine) this.lost();
    void this.begin();
  }

  destroy() {
    this.keep();
    this.alive = false;
    this.run?.abort.abort();
    this.run = null;
    for (const timer of this.timers) clearTimeout(timer);
    this.timers.clear();
    window.removeEventListener('online', this.reconnect);
    window.removeEventListener('offline', this.lost);
    window.removeEventListener('pagehide', this.hide);
    window.removeEventListener('pageshow', this.show);
  }

  send(text: string) {
    this.thread.add({ id: newId(), role: 'user', text, at: Date.now(), status: 'queued' });
    this.keep();
    this.pump();
  }

  retry(id: string) {
    const prompt = this.thread.find(id);
    if (prompt?.role !== 'user') return;
    // Files that could not go this way do not go with it now.
    this.thread.patch(id, { status: 'queued', failure: undefined, files: undefined });
    this.keep();
    if (this.state().connection.state === 'live') this.pump();
    else this.reconnect();
  }

  stop() {
    this.run?.abort.abort();
  }

  regenerate() {
    const prompt = this.thread.lastPrompt();
    if (prompt === undefined || isRunning(this.state())) return true;
    this.thread.cutAt(prompt.id);
    // Asked twice it is said twice, to the server's history as well.
    this.thread.add({ ...prompt, id: newId(), status: 'queued', failure: undefined });
    this.keep();
    this.pump();
    return true;
  }

  edit(id: string, text: string) {
    this.thread.cutAt(id);
    // A reply that has left the thread would be written, and paid, for nobody.
    if (this.run !== null && this.thread.find(this.run.prompt) === undefined) {
      this.stop();
      this.run = null;
    }
    this.send(text);
  }

  newConversation() {
    this.chosen = true;
    this.leave();
    this.oldest = undefined;
    this.thread.set({ conversation: newId(), messages: [], older: 'nothing', loaded: true });
  }

  openConversation(key: string | null) {
    if (key === this.state().conversation) return;
    this.chosen = true;
    this.leave();
    void this.open(key);
  }

  loadOlder() {
    const { older, conversation, messages: shown } = this.state();
    if (older !== 'more' && older !== 'failed') return;
    this.thread.set({ older: 'loading' });
    olderPage(this.api, conversation, shown, this.oldest).then(
      ({ messages, oldest, more }) => {
        if (!this.alive || this.state().conversation !== conversation) return;
        this.oldest = oldest;
        this.readBefore(messages, more ? 'more' : 'beginning');
      },
      () => {
        if (this.alive && this.state().conversation === conversation) this.thread.set({ older: 'failed' });
      },
    );
  }

  reconnect = () => {
    this.failures = 0;
    void this.probe();
  };

  private leave() {
    this.stop();
    this.run = null;
    this.keep();
    this.thread.set({ conversations: this.conversations() });
  }

  private async begin() {
    // What another way could not deliver was meant for the conversation that was open there.
    const known = this.unfinished.waiting().at(-1)?.session ?? this.local.conversations()[0]?.key;
    const listed = this.api.conversations().then(
      (list) => {
        this.elsewhere = list;
        if (this.alive) this.thread.set({ conversations: this.conversations() });
      },
      // Without the server's list there is this browser's.
      () => null,
    );
    // A browser that knows none goes on with the last one held in another.
    if (known === undefined) await listed;
    if (!this.alive) return;
    this.begun = true;
    if (this.chosen) {
      this.pump();
      return;
    }
    await this.open(known ?? this.conversations()[0]?.key ?? null, this.state().messages);
  }

  private async open(key: string | null, typed: readonly Message[] = []) {
    await this.load(key, typed);
    if (this.alive && key !== null && this.state().conversation === key) this.deliver(key);
  }

  /** What another engine took for this conversation and could not deliver. */
  private deliver(key: string) {
    const prompts = this.unfinished.handOver(key);
    for (const prompt of prompts) {
      const failure = undelivered(prompt);
      if (failure === null) this.send(prompt.message.text);
      else this.thread.add({ ...prompt.message, id: newId(), status: 'failed', failure });
    }
    if (prompts.length > 0) this.keep();
  }

  /** Here, at the server, and those in which something waits that another engine took. */
  private conversations(): Conversation[] {
    const waiting = this.unfinished
      .waiting()
      .map(({ session, message }) => ({ key: session, title: titleOf([message]), updatedAt: message.at }));
    const known = new Map<string, Conversation>();
    for (const one of [...this.local.conversations(), ...this.elsewhere, ...waiting])
      if (!known.has(one.key)) known.set(one.key, one);
    return [...known.values()].sort((a, b) => b.updatedAt - a.updatedAt);
  }

  private async load(key: string | null, typed: readonly Message[] = []) {
    const kept = this.local.messages(key);
    const known = new Set(kept?.map(({ id }) => id));
    const messages = [...(kept ?? []), ...typed.filter(({ id }) => !known.has(id))];
    this.oldest = undefined;
    // Fewer than a page were never cut off.
    const older = (kept?.length ?? 0) >= HISTORY_SIZE ? 'more' : 'nothing';
    this.thread.set({ conversation: key, messages, older, loaded: kept !== null });
    this.read = messages.length === (kept?.length ?? 0) ? messages : null;
    const last = kept?.at(-1);
    // What waited for a connection when the page was closed, or was typed before it was open, goes out now.
    this.pump();
    // What this browser holds is whole, unless it was closed in the middle of a reply.
    if (kept !== null && last?.status !== 'broken') return;
    const rest = await this.api.history(key).catch(() => []);
    if (!this.alive || this.state().conversation !== key) return;
    if (kept === null) {
      const messages = storedMessages(rest);
      this.oldest = rest[0]?.id;
      // What was typed meanwhile comes after.
      this.readBefore(messages, rest.length === HISTORY_SIZE ? 'more' : 'nothing');
      this.thread.set({ loaded: true });
      // Somebody's very first conversation is one like all later ones.
      if (key === null && messages.length === 0) this.thread.set({ conversation: newId() });
      return;
    }
    const whole = rest.findLast((one) => one.role === 'assistant');
    if (last?.text && whole && whole.content.length > last.text.length && whole.content.startsWith(last.text))
      this.thread.patch(last.id, { text: whole.content, status: 'done' });
  }

  private readBefore(messages: readonly Message[], older: Older) {
    const unchanged = this.state().messages === this.read;
    this.thread.addBefore(messages, older);
    if (unchanged) this.read = this.state().messages;
  }

  private pump() {
    // What a left engine has kept is the next one's to send.
    if (!this.alive || !this.begun || this.hidden || this.run !== null) return;
    if (this.state().connection.state !== 'live') return;
    const prompt = this.state().messages.find((message) => message.status === 'queued');
    if (prompt !== undefined) void this.ask(prompt);
  }

  private async ask(prompt: Message) {
    const reply = newId();
    const run: Run = { prompt: prompt.id, reply, abort: new AbortController() };
    this.run = run;
    const { conversation } = this.state();
    const began = Date.now();
    this.thread.patch(prompt.id, { status: 'sending', failure: undefined });
    const turns = this.turns(prompt.id);
    this.insertAfter(prompt.id, { id: reply, role: 'assistant', text: '', at: began, status: 'streaming' });
    // Whatever becomes of this page: what is on its way waits no longer.
    this.keep();

    const arrival = { opened: false, offline: !navigator.onLine && !this.reached };
    // The server has stored the prompt by the time it answers, and recognises it in the save that comes after.
    const taken = () => {
      arrival.opened = true;
      this.thread.patch(prompt.id, { status: 'sent' });
      this.events.onPrompt(prompt, conversation);
    };
    const writer = new ReplyWriter((change) => this.thread.patch(reply, change));
    try {
      await this.api.ask(
        turns,
        {
          open: taken,
          chunk: (chunk) => writer.take(chunk),
        },
        run.abort.signal,
      );
      writer.flush();
      this.finish(run, { status: 'done', latencyMs: Date.now() - began }, conversation, began);
    } catch (error) {
      writer.flush();
      // A page that goes may hear of its streams' end before it hears that it goes.
      if (!run.abort.signal.aborted) await new Promise((resolve) => setTimeout(resolve, LEAVING_MS));
      if (!this.alive || this.hidden) this.thread.patch(reply, { status: 'broken' });
      else if (run.abort.signal.aborted) {
        if (!arrival.opened) taken();
        this.finish(run, { status: 'stopped', latencyMs: Date.now() - began }, conversation, began);
      } else this.fail(run, arrival, failureOf(error));
    } finally {
      if (this.run === run) this.run = null;
      // When it was left the thread was kept; by now another engine may have gone on with it.
      if (this.alive) {
        this.keep();
        this.pump();
      }
    }
  }

  private finish(run: Run, change: Partial<Message>, conversation: string | null, began: number) {
    this.failures = 0;
    this.thread.patch(run.reply, change);
    const reply = this.thread.find(run.reply);
    if (reply === undefined) return;
    if (reply.text === '' && change.status === 'stopped') this.thread.remove(run.reply);
    if (reply.text !== '') this.events.onFinal(reply, conversation);
    const { usage } = reply;
    if (usage === undefined || !this.alive) return;
    const used = { id: reply.id, at: Date.now(), since: began, usage };
    this.later(COST_AFTER_MS, () => {
      this.api.costs([used]).then(
        (costs) => {
          const cost = costs.get(reply.id);
          if (cost !== undefined) this.thread.patch(reply.id, { usage: { ...usage, cost } });
        },
        () => null,
      );
    });
  }

  private fail(run: Run, { opened, offline }: { opened: boolean; offline: boolean }, failure: Failure) {
    const reply = this.thread.find(run.reply);
    if (opened && reply && reply.text !== '') {
      this.thread.patch(run.reply, { status: 'broken', failure });
      return;
    }
    this.thread.remove(run.reply);
    if (failure.code === 'network' && !opened) {
      // What never left this device waits for the connection. Anything else may have arrived, and the server stores and
      // pays a question before it answers: it is asked again by the person alone.
      this.thread.patch(run.prompt, offline ? { status: 'queued' } : { status: 'failed', failure: UNSURE });
      this.wait();
    } else this.thread.patch(run.prompt, { status: 'failed', failure });
  }

  private lost = () => {
    this.reached = false;
    this.wait();
  };

  private wait() {
    if (!this.alive) return;
    this.failures += 1;
    const delay = backoff(this.failures);
    const hop = navigator.onLine ? 'server' : 'offline';
    this.thread.set({ connection: { state: 'waiting', retryAt: Date.now() + delay, hop } });
    this.later(delay, () => void this.probe());
  }

  private async probe() {
    if (this.state().connection.state === 'live' || !this.alive) return;
    for (const timer of this.timers) clearTimeout(timer);
    this.timers.clear();
    this.thread.set({ connection: { state: 'connecting' } });
    try {
      await this.api.ping();
      this.answered();
    } catch {
      this.wait();
    }
  }

  private answered() {
    if (!this.alive) return;
    this.reached = !navigator.onLine;
    this.failures = 0;
    this.thread.set({ connection: { state: 'live' } });
    this.pump();
  }

  /** The conversation up to and with this prompt; what failed was never said. */
  private turns(promptId: string): Turn[] {
    const { messages } = this.state();
    const at = messages.findIndex((message) => message.id === promptId);
    const said = messages
      .slice(0, at + 1)
      .filter((message) => message.text !== '' && (message.status !== 'failed' || message.id === promptId));
    const turns: Turn[] = [];
    let size = 0;
    for (const { role, text } of said.slice(-MOST_TURNS).reverse()) {
      size += text.length;
      if (size > MOST_CHARACTERS && turns.length > 0) break;
      turns.unshift({ role, content: text });
    }
    return turns;
  }

  private insertAfter(id: string, message: Message) {
    const messages = [...this.state().messages];
    messages.splice(messages.findIndex((one) => one.id === id) + 1, 0, message);
    this.thread.set({ messages });
  }

  private hide = () => {
    this.keep();
    this.hidden = true;
    const { conversation, messages } = this.state();
    this.stored = this.local.messages(conversation)?.at(-1)?.id === messages.at(-1)?.id;
  };

  private show = ({ persisted }: PageTransitionEvent) => {
    this.hidden = false;
    // The browser had put this page away: another may have gone on with the thread, and sent what waited.
    if (persisted && this.stored) void this.load(this.state().conversation);
    else this.pump();
  };

  private keep = () => {
    const { conversation, messages } = this.state();
    if (messages === this.read) return;
    this.local.keep(conversation, messages);
    this.thread.set({ conversations: this.conversations() });
  };

  private later(delay: number, work: () => void) {
    const timer = setTimeout(() => {
      this.timers.delete(timer);
      if (this.alive) work();
    }, delay);
    this.timers.add(timer);
  }
}

/** Why a prompt of another engine is left to the person; null where it can go out. */
function undelivered({ files, tried }: Prompt): Failure | null {
  if (files.length > 0) return { code: NO_FILES, msg: '' };
  return tried ? UNSURE : null;
}

function failureOf(error: unknown): Failure {
  return error instanceof ApiError
    ? { code: error.code, msg: error.msg }
    : { code: 'malformed', msg: String(error) };
}
