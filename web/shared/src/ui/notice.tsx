// A short message in place. Errors interrupt a screen reader, the rest waits for a pause.
import { CircleAlert, CircleCheck, Info, TriangleAlert } from 'lucide-react';
import type { ReactNode } from 'react';

type Tone = 'error' | 'warning' | 'success' | 'info';

const TONES = {
  error: { icon: CircleAlert, look: 'bg-danger-soft text-danger' },
  warning: { icon: TriangleAlert, look: 'bg-warning-soft text-warning' },
  success: { icon: CircleCheck, look: 'bg-success-soft text-success' },
  info: { icon: Info, look: 'bg-accent-soft text-accent-strong' },
} as const;

export function Notice({ tone, children }: { tone: Tone; children: ReactNode }) {
  const { icon: Icon, look } = TONES[tone];
  return (
    <div
      role={tone === 'error' ? 'alert' : 'status'}
      className={`flex gap-2.5 rounded-lg px-3.5 py-2.5 text-sm ${look}`}
    >
      <Icon className="mt-0.5 size-4.5 shrink-0" aria-hidden="true" />
      <div className="min-w-0 flex-1">{children}</div>
    </div>
  );
}
