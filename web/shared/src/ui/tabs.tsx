// Tabs: one of several views in the same place. The arrow keys move between them, as screen readers expect.
import { useId, useRef, type KeyboardEvent, type ReactNode } from 'react';

export interface Tab<Value extends string> {
  value: Value;
  label: string;
  /** How many there are behind it, when that is known and matters. */
  count?: number;
}

interface TabsProps<Value extends string> {
  label: string;
  tabs: readonly Tab<Value>[];
  value: Value;
  onChange: (value: Value) => void;
  /** The bar alone goes into a panel's head; the content follows in `children` otherwise. */
  children?: (bar: ReactNode, content: (body: ReactNode) => ReactNode) => ReactNode;
  className?: string;
}

/** Where the bar is too narrow for all of them, the chosen one is in its middle. */
function intoSight(tab: HTMLElement | null) {
  const bar = tab?.parentElement;
  if (tab && bar) bar.scrollLeft = tab.offsetLeft - (bar.clientWidth - tab.offsetWidth) / 2;
}

export function Tabs<Value extends string>(props: TabsProps<Value>) {
  const { label, tabs, value, onChange, children, className = '' } = props;
  const id = useId();
  const list = useRef<HTMLDivElement>(null);

  function move(event: KeyboardEvent) {
    const at = tabs.findIndex((tab) => tab.value === value);
    const next =
      event.key === 'ArrowRight'
        ? (at + 1) % tabs.length
        : event.key === 'ArrowLeft'
          ? (at + tabs.length - 1) % tabs.length
          : event.key === 'Home'
            ? 0
            : event.key === 'End'
              ? tabs.length - 1
              : -1;
    const tab = tabs[next];
    if (tab === undefined) return;
    event.preventDefault();
    onChange(tab.value);
    list.current?.querySelectorAll<HTMLElement>('[role=tab]')[next]?.focus();
  }

  const bar = (
    <div
      ref={list}
      role="tablist"
      aria-label={label}
      className={`relative flex gap-1 overflow-x-auto overscroll-x-contain border-b border-line [scrollbar-width:none] ${className}`}
    >
      {tabs.map((tab) => (
        <button
          key={tab.value}
          ref={tab.value === value ? intoSight : undefined}
          type="button"
          role="tab"
          id={`${id}-${tab.value}`}
          aria-selected={tab.value === value}
          aria-controls={tab.value === value ? `${id}-content` : undefined}
          tabIndex={tab.value === value ? 0 : -1}
          onClick={() => onChange(tab.value)}
          onKeyDown={move}
          className="-mb-px flex min-h-10 shrink-0 items-center gap-1.5 border-b-2 border-transparent px-2.5 text-sm font-medium text-muted -outline-offset-2 hover:text-ink aria-selected:border-accent aria-selected:text-ink"
        >
          {tab.label}
          {tab.count !== undefined && (
            <span className="rounded-full bg-sunken px-1.5 text-xs text-muted tabular-nums">{tab.count}</span>
          )}
        </button>
      ))}
    </div>
  );
  const content = (body: ReactNode) => (
    <div role="tabpanel" id={`${id}-content`} aria-labelledby={`${id}-${value}`} className="min-w-0">
      {body}
    </div>
  );
  return children ? children(bar, content) : bar;
}
