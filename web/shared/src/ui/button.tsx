// Buttons, and links that look like them. A busy button stays focusable and says so, instead of vanishing from the keyboard.
import { LoaderCircle } from 'lucide-react';
import type { ComponentProps } from 'react';

type Look = 'primary' | 'secondary' | 'quiet' | 'danger';
type Size = 'normal' | 'small';

const BASE =
  'inline-flex items-center justify-center gap-2 rounded-lg text-sm font-medium transition-colors select-none aria-disabled:opacity-70 disabled:opacity-60';

const SIZES: Record<Size, string> = { normal: 'min-h-10 px-4 py-2', small: 'min-h-8 px-2.5 py-1' };

const LOOKS: Record<Look, string> = {
  primary: 'bg-accent text-on-accent hover:bg-accent-strong',
  secondary: 'border border-control/60 bg-surface text-ink hover:border-control hover:bg-sunken',
  quiet: 'text-ink hover:bg-sunken',
  danger: 'border border-danger/60 bg-surface text-danger hover:border-danger hover:bg-danger-soft',
};

export function buttonClass(look: Look, extra = '', size: Size = 'normal'): string {
  return `${BASE} ${SIZES[size]} ${LOOKS[look]} ${extra}`;
}

interface ButtonProps extends ComponentProps<'button'> {
  look?: Look;
  size?: Size;
  busy?: boolean;
}

export function Button({
  look = 'secondary',
  size = 'normal',
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
      className={buttonClass(look, className, size)}
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
