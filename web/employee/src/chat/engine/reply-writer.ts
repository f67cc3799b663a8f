// A reply as it is written: chunks of the stream in, changes of the message out.
import type { Chunk } from './gateway-api';
import type { Message, ToolCall } from './types';

/** A page draws no faster than this; the stream may be faster. */
const FLUSH_MS = 40;

/** Gathers chunks and hands them on at a pace that a page can draw. */
export class ReplyWriter {
  private text = '';
  private reasoning = '';
  private readonly tools = new Map<number, ToolCall>();
  private timer: ReturnType<typeof setTimeout> | null = null;

  constructor(private readonly write: (change: Partial<Message>) => void) {}

  take(chunk: Chunk) {
    const delta = chunk.choices?.[0]?.delta;
    this.text += delta?.content ?? '';
    this.reasoning += delta?.reasoning_content ?? '';
    for (const call of delta?.tool_calls ?? []) this.takeTool(call);
    if (chunk.model) this.write({ model: chunk.model });
    if (chunk.usage) {
      const { prompt_tokens: prompt, completion_tokens: completion, total_tokens: total } = chunk.usage;
      this.write({ usage: { prompt, completion, total, cost: null } });
    }
    this.timer ??= setTimeout(() => this.flush(), FLUSH_MS);
  }

  flush() {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
    this.write({
      text: this.text,
      ...(this.reasoning && { reasoning: this.reasoning }),
      ...(this.tools.size > 0 && { tools: [...this.tools.values()] }),
    });
  }

  private takeTool(call: { index?: number; id?: string; function?: { name?: string; arguments?: string } }) {
    const index = call.index ?? this.tools.size;
    const known = this.tools.get(index);
    this.tools.set(index, {
      id: call.id ?? known?.id ?? String(index),
      name: known?.name || (call.function?.name ?? ''),
      input: (known?.input ?? '') + (call.function?.arguments ?? ''),
      output: '',
      state: 'done',
    });
  }
}
