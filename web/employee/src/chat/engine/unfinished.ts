// What is not finished between a person and an instance, by conversation: prompts that the assistant has not taken, and
// runs whose end was not seen. It outlives the engine and the open conversation; a prompt is delivered by one way only.
import type { Attachment, Message } from './types';

/** A prompt that waits, is on its way, or was refused. */
export interface Prompt {
  message: Message;
  session: string;
  files: readonly Attachment[];
  /** It was on its way once: the assistant may have it. */
  tried: boolean;
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

export class Unfinished {
  private readonly prompts = new Map<string, Prompt>();
  private readonly runs = new Map<string, Run>();

  add(prompt: Prompt) {
    this.prompts.set(prompt.message.id, prompt);
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
    if (prompt !== undefined) prompt.message = { ...prompt.message, ...change };
  }

  /** The assistant has it; answers whether that is news. */
  taken(id: string): boolean {
    return this.prompts.delete(id);
  }

  begun(run: Run) {
    const known = this.runs.get(run.id);
    if (known === undefined) this.runs.set(run.id, run);
    // Its first words may come before the answer to its prompt.
    else known.asked ||= run.asked;
  }

  ended(id: string) {
    this.runs.delete(id);
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

  /** Gives what waits in a conversation to another way; from then on it is that one's to deliver. */
  handOver(session: string): Prompt[] {
    const waiting = this.waiting().filter((prompt) => prompt.session === session);
    for (const { message } of waiting) this.prompts.delete(message.id);
    return waiting;
  }
}

/** What was refused stands where it was said; what waits comes last. */
export function withOpen(known: readonly Message[], open: readonly Message[]): Message[] {
  const messages = [...known];
  for (const message of open) {
    const after = message.status === 'failed' ? messages.findIndex(({ at }) => at > message.at) : -1;
    messages.splice(after === -1 ? messages.length : after, 0, message);
  }
  return messages;
}

const byInstance = new Map<string, Unfinished>();

export function unfinishedOf(account: string, instance: string): Unfinished {
  const key = `${account} ${instance}`;
  const known = byInstance.get(key) ?? new Unfinished();
  byInstance.set(key, known);
  return known;
}

/** Leaves nothing of anybody's in this page. */
export function forgetUnfinished() {
  byInstance.clear();
}
