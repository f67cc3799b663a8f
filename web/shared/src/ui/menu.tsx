// A menu of actions behind a button; an entry may be dangerous, or impossible with a reason.
import * as Radix from '@radix-ui/react-dropdown-menu';
import { EllipsisVertical, type LucideIcon } from 'lucide-react';
import type { ReactNode } from 'react';

export interface MenuEntry {
  label: string;
  icon?: LucideIcon;
  danger?: boolean;
  disabled?: boolean;
  /** Why it is impossible; it is disabled then. */
  reason?: string;
  run: () => void;
}

interface MenuProps {
  label: string;
  entries: readonly MenuEntry[];
  /** The button's looks; three dots otherwise. */
  trigger?: ReactNode;
  triggerClass?: string;
}

const DOTS =
  'flex size-8 items-center justify-center rounded-lg text-muted hover:bg-sunken hover:text-ink data-[state=open]:bg-sunken';

export const MENU =
  'z-50 max-h-(--radix-dropdown-menu-content-available-height) min-w-48 overflow-y-auto rounded-xl border border-line bg-surface p-1.5 text-ink shadow-high';
export const MENU_ITEM =
  'flex min-h-9 items-center gap-2.5 rounded-md px-2.5 py-1.5 text-sm select-none outline-none data-highlighted:bg-accent-soft data-highlighted:text-accent-strong data-disabled:text-muted data-disabled:opacity-60';

export function Menu({ label, entries, trigger, triggerClass = DOTS }: MenuProps) {
  return (
    <Radix.Root modal={false}>
      <Radix.Trigger className={triggerClass} aria-label={trigger === undefined ? label : undefined}>
        {trigger ?? <EllipsisVertical className="size-4.5" aria-hidden="true" />}
      </Radix.Trigger>
      {/* Where its button is, not at the end of the page: it stays inside a landmark. */}
      <Radix.Content align="end" sideOffset={4} collisionPadding={8} className={MENU} aria-label={label}>
        {entries.map(({ label: name, icon: Icon, danger = false, disabled, reason, run }) => (
          <Radix.Item
            key={name}
            disabled={disabled === true || reason !== undefined}
            onSelect={run}
            className={`${MENU_ITEM} ${reason === undefined ? '' : 'data-disabled:opacity-100'} ${danger ? 'text-danger data-highlighted:bg-danger-soft data-highlighted:text-danger' : ''}`}
          >
            {Icon && <Icon className="size-4" aria-hidden="true" />}
            {reason === undefined ? (
              name
            ) : (
              <span className="max-w-60 text-start">
                {name}
                <span className="block text-xs">{reason}</span>
              </span>
            )}
          </Radix.Item>
        ))}
      </Radix.Content>
    </Radix.Root>
  );
}
