// What replies on the live connection cost: the assistant knows no prices, the request log does, a moment later.
import type { Costs } from './request-costs';
import type { Thread } from './thread';

export class Pricing {
  /** By the replies' ids, as far as it is known. */
  private readonly priced = new Map<string, number>();
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly thread: Thread,
    private readonly costs: Costs,
  ) {}

  /** Looks up the replies of the thread of which it is not known yet. */
  look(after: number) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      const open = this.thread
        .state()
        .messages.flatMap(({ id, at, usage }) => (usage?.cost === null ? [{ id, at, usage }] : []));
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

  end() {
    clearTimeout(this.timer);
  }
}
