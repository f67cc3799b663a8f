// Short news about something just done, at the screen's edge. It goes by itself, unless it reports a failure.
import { CircleAlert, CircleCheck, CircleHelp, X } from 'lucide-react';
import { useSyncExternalStore } from 'react';
import { useI18n } from '../i18n/i18n';

type Tone = 'success' | 'error' | 'unknown';

interface Toast {
  id: number;
  tone: Tone;
  text: string;
  action?: { label: string; run: () => void };
}

const SHOWN_MS = 6_000;
const MOST = 4;
const ICONS = { success: CircleCheck, error: CircleAlert, unknown: CircleHelp };
const COLOURS = { success: 'text-success', error: 'text-danger', unknown: 'text-warning' };

let toasts: readonly Toast[] = [];
let last = 0;
const listeners = new Set<() => void>();

function change(next: readonly Toast[]) {
  toasts = next;
  for (const listener of listeners) listener();
}

function dismiss(id: number) {
  change(toasts.filter((toast) => toast.id !== id));
}

export function toast(tone: Tone, text: string, action?: Toast['action']) {
  last += 1;
  const id = last;
  change([...toasts.slice(1 - MOST), { id, tone, text, action }]);
  if (tone === 'success') setTimeout(() => dismiss(id), SHOWN_MS);
}

function subscribe(listener: () => void) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Stands once in the frame. */
export function Toaster() {
  const { t } = useI18n();
  const shown = useSyncExternalStore(subscribe, () => toasts);
  return (
    <div
      aria-live="polite"
      className="pointer-events-none fixed inset-x-3 bottom-3 z-60 flex flex-col items-end gap-2"
    >
      {shown.map(({ id, tone, text, action }) => {
        const Icon = ICONS[tone];
        return (
          <div
            key={id}
            className="rise-in pointer-events-auto flex max-w-md items-start gap-2.5 rounded-xl border border-line bg-surface py-2.5 ps-3.5 pe-2 text-sm shadow-high"
          >
            <Icon className={`mt-0.5 size-4.5 shrink-0 ${COLOURS[tone]}`} aria-hidden="true" />
            <span className="min-w-0 flex-1">{text}</span>
            {action && (
              <button
                type="button"
                className="min-h-6 rounded font-medium text-accent hover:underline"
                onClick={() => {
                  dismiss(id);
                  action.run();
                }}
              >
                {action.label}
              </button>
            )}
            <button
              type="button"
              className="flex size-6 shrink-0 items-center justify-center rounded text-muted hover:text-ink"
              aria-label={t('toast.dismiss')}
              onClick={() => dismiss(id)}
            >
              <X className="size-4" aria-hidden="true" />
            </button>
          </div>
        );
      })}
    </div>
  );
}
