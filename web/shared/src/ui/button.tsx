// Buttons, and links that look like them. A busy button stays focusable and says so, instead of vanishing from the keyboard.
import { LoaderCircle } from 'lucide-react';
import type { ComponentProps } from 'react';

type Look = 'primary' | 'secondary' | 'quiet';

const BASE =
  'inline-flex min-h-10 items-center justify-center gap-2 rounded-lg px-4 py-2 text-sm font-medium transition-colors select-none aria-disabled:opacity-70';

const LOOKS: Record<Look, string> = {
  primary: 'bg-accent text-on-accent hover:bg-accent-strong',
  secondary: 'border border-control/60 bg-surface text-ink hover:border-control hover:bg-sunken',
  quiet: 'text-ink hover:bg-sunken',
};

export function buttonClass(look: Look, extra = ''): string {
  return `${BASE} ${LOOKS[look]} ${extra}`;
}

interface ButtonProps extends ComponentProps<'button'> {
  look?: Look;
  busy?: boolean;
}

export function Button({
  look = 'secondary',
  busy = false,
  className,
  children,
  onClick,
  ...rest
}: ButtonProps) {
  return (
    <button
      type="button"
      {...rest}
      className={buttonClass(look, className)}
      aria-disabled={busy || undefined}
      onClick={(event) => {
        if (busy) event.preventDefault();
        else onClick?.(event);
      }}
    >
      {busy && <LoaderCircle className="size-4 animate-spin" aria-hidden="true" />}
      {children}
    </button>
  );
}
