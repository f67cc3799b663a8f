// States in one word: a badge, and a dot whose form repeats its colour, so that nobody needs to tell the colours apart.
import type { ReactNode } from 'react';

export type Tone = 'good' | 'warn' | 'bad' | 'busy' | 'none';

const BADGES: Record<Tone, string> = {
  good: 'bg-success-soft text-success',
  warn: 'bg-warning-soft text-warning',
  bad: 'bg-danger-soft text-danger',
  busy: 'bg-accent-soft text-accent-strong',
  none: 'bg-sunken text-muted',
};

export function Badge({ tone = 'none', children }: { tone?: Tone; children: ReactNode }) {
  return (
    <span
      className={`inline-flex items-center gap-1 rounded-md px-1.5 py-0.5 text-xs font-medium whitespace-nowrap ${BADGES[tone]}`}
    >
      {children}
    </span>
  );
}

/**
 * A dot and a word. Unknown is a ring, trouble a diamond, a failure a square, work in progress a pulse. `wraps` is for
 * a sentence in place of a word.
 */
export function Status({
  tone,
  wraps = false,
  children,
}: {
  tone: Tone;
  wraps?: boolean;
  children: ReactNode;
}) {
  return (
    <span className={`inline-flex items-center gap-2 ${wraps ? '' : 'whitespace-nowrap'}`}>
      <StatusDot tone={tone} />
      {children}
    </span>
  );
}

const DOTS: Record<Tone, string> = {
  good: 'rounded-full bg-success',
  warn: 'rotate-45 rounded-[1px] bg-warning',
  bad: 'rounded-[2px] bg-danger',
  busy: 'animate-pulse rounded-full bg-accent',
  none: 'rounded-full border-2 border-control',
};

export function StatusDot({ tone }: { tone: Tone }) {
  return <span aria-hidden="true" className={`inline-block size-2.5 shrink-0 ${DOTS[tone]}`} />;
}
