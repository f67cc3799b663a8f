// A button that is only an icon: its name is read out, and shown on hover.
import type { LucideIcon } from 'lucide-react';
import type { ComponentProps } from 'react';

const SIZES = {
  small: { button: 'size-8 rounded-md', icon: 'size-4' },
  normal: { button: 'size-9 rounded-lg', icon: 'size-5' },
};

interface IconButtonProps extends Omit<ComponentProps<'button'>, 'children'> {
  icon: LucideIcon;
  label: string;
  /** What hovering shows, where that says more than the name. */
  hint?: string;
  size?: keyof typeof SIZES;
}

export function IconButton({
  icon: Icon,
  label,
  hint = label,
  size = 'small',
  className = '',
  ...rest
}: IconButtonProps) {
  const { button, icon } = SIZES[size];
  return (
    <button
      type="button"
      {...rest}
      aria-label={label}
      title={hint}
      className={`flex shrink-0 items-center justify-center text-muted hover:bg-sunken hover:text-ink disabled:opacity-60 ${button} ${className}`}
    >
      <Icon className={icon} aria-hidden="true" />
    </button>
  );
}
