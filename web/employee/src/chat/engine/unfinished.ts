// What is not finished between a person and an instance, by conversation: prompts that the assistant has not written
// down, and runs whose end was not seen. It outlives the engine and the open conversation, and what waits outlives the
// page; a prompt is delivered by one way only.
import { NO_STORE, promptStore, type PromptStore } from '../prompt-store';
import type { Attachment, Message } from './types';

/** A prompt that waits, is on its way, was refused, or was taken and does not stand in the history yet. */
export interface Prompt {
  message: Message;
  session: string;
  files: readonly Attachment[];
  /** It was on its way once: the assistant may have it. */
  tried: boolean;
  /** Another tab's, as it stood when this page was opened. */
  foreign?: boolean;
  /** It was seen in the store, which not every browser has room for. */
  stored?: boolean;
  /** What answers it, once it is taken. */
  run?: string;
}

/** A reply that was being written when it was last seen. */
export interface Run {
  id: string;
  session: string;
  /** By a prompt of this page, whose id it has. */
  asked: boolean;
  /** As much as was seen of it when its conversation was left. */
  reply?: Message;
}

/** Files may be large: those of so many conversations stay in memory. */
const MOST_WITH_FILES = 3;

export class Unfinished {
  private readonly prompts = new Map<string, Prompt>();
  private readonly runs = new Map<string, Run>();
  /** The files of the last prompt of a conversation, should it be asked again; in this page only, since they are too much to store. */
  private readonly sent = new Map<string, { id: string; files: readonly Attachment[] }>();
  /** Conversations that were begun here and that the assistant has still to make. */
  private readonly unmade = new Set<string>();

  constructor(private readonly store: PromptStore = NO_STORE) {
    for (const { unmade, ...prompt } of store.read()) {
      this.prompts.set(prompt.message.id, { ...prompt, stored: true });
      if (unmade) this.unmade.add(prompt.session);
    }
  }

  add(prompt: Prompt) {
    this.prompts.set(prompt.message.id, prompt);
    this.keep(prompt);
  }

  prompt(id: string): Prompt | undefined {
    return this.prompts.get(id);
  }

  promptsOf(session: string): Prompt[] {
    return [...this.prompts.values()].filter((prompt) => prompt.session === session);
  }

  sessions(): Set<string> {
    return new Set([...this.prompts.values(), ...this.runs.values()].map(({ session }) => session));
  }

  change(id: string, change: Partial<Message>) {
    const prompt = this.prompts.get(id);
    if (prompt === undefined) return;
    prompt.message = { ...prompt.message, ...change };
    this.keep(prompt);
  }

  /** From now on the assistant may have it. */
  trying(prompt: Prompt) {
    prompt.tried = true;
    this.keep(prompt);
  }

  /** The assistant has it; answers whether that is news. */
  taken(id: string, run: string): boolean {
    const prompt = this.prompts.get(id);
    if (prompt === undefined || prompt.message.status === 'sent') return false;
    prompt.run = run;
    this.keepFiles(prompt);
    prompt.files = [];
    this.change(id, { status: 'sent', failure: undefined });
    return true;
  }

  /** What is in the files of a prompt, if that is known here. */
  filesOf(id: string): readonly Attachment[] {
    const waiting = this.prompts.get(id)?.files ?? [];
    if (waiting.length > 0) return waiting;
    return [...this.sent.values()].find((prompt) => prompt.id === id)?.files ?? [];
  }

  private keepFiles({ message, session, files }: Prompt) {
    this.sent.delete(session);
    if (files.length > 0) this.sent.set(session, { id: message.id, files });
    for (const oldest of this.sent.keys()) {
      if (this.sent.size <= MOST_WITH_FILES) break;
      this.sent.delete(oldest);
    }
  }

  /** It stands in the history, is another's to deliver, or is not meant any more. */
  drop(id: string) {
    this.prompts.delete(id);
    this.store.drop(id);
  }

  begin(session: string) {
    this.unmade.add(session);
  }

  made(session: string) {
    this.unmade.delete(session);
  }

  isUnmade(session: string): boolean {
    return this.unmade.has(session);
  }

  begun(run: Run) {
    const known = this.runs.get(run.id);
    if (known === undefined) this.runs.set(run.id, run);
    // Its first words may come before the answer to its prompt.
    else known.asked ||= run.asked;
  }

  ended(id: string) {
    this.runs.delete(id);
    for (const prompt of this.prompts.values()) if (prompt.run === id) this.drop(prompt.message.id);
  }

  run(id: string): Run | undefined {
    return this.runs.get(id);
  }

  runsOf(session: string): Run[] {
    return [...this.runs.values()].filter((run) => run.session === session);
  }

  /** What has still to be delivered, in the order in which it was written. */
  waiting(): Prompt[] {
    return [...this.prompts.values()].filter(
      ({ message }) => message.status === 'queued' || message.status === 'sending',
    );
  }

  /** Its own tab has changed it, or had it delivered. */
  isGone({ message, foreign }: Prompt): boolean {
    return foreign === true && !this.store.has(message.id);
  }

  /** Gives what waits in a conversation to another way; from then on it is that one's to deliver. */
  handOver(session: string): Prompt[] {
    const waiting = this.waiting().filter((prompt) => prompt.session === session && !this.isGone(prompt));
    for (const prompt of waiting) {
      // One that is not in the store any more was delivered by another tab.
      prompt.tried ||= prompt.stored === true && !this.store.has(prompt.message.id);
      this.drop(prompt.message.id);
    }
    return waiting;
  }

  /** A file is too much to keep, and what was refused or taken waits for nothing. */
  private keep(prompt: Prompt) {
    const { message, session, files, tried } = prompt;
    const waits = message.status === 'queued' || message.status === 'sending';
    if (!waits || files.length > 0) this.store.drop(message.id);
    else {
      this.store.keep({ message, session, tried, unmade: this.unmade.has(session) });
      prompt.stored = this.store.has(message.id);
    }
  }
}

/** What was refused stands where it was said, what was taken before its reply; what waits comes last. */
export function withOpen(known: readonly Message[], open: readonly Message[]): Message[] {
  const messages = [...known];
  for (const message of open) {
    const after = messages.findIndex(
      ({ at, run }) => (message.status === 'failed' && at > message.at) || run === message.id,
    );
    messages.splice(after === -1 ? messages.length : after, 0, message);
  }
  return messages;
}

const byInstance = new Map<string, Unfinished>();

export function unfinishedOf(account: string, instance: string): Unfinished {
  const key = `${account} ${instance}`;
  const known = byInstance.get(key) ?? new Unfinished(promptStore(account, instance));
  byInstance.set(key, known);
  return known;
}

/** Leaves nothing of anybody's in this page. */
export function forgetUnfinished() {
  byInstance.clear();
}
