// One choice out of a few, side by side: native radio buttons, so the arrow keys and screen readers work as everywhere.
import { useId, type ReactNode } from 'react';

interface Option<Value extends string> {
  value: Value;
  label: string;
  icon?: ReactNode;
}

interface SegmentedProps<Value extends string> {
  legend: string;
  /** Hides the legend and labels that have an icon from sight, not from screen readers. */
  compact?: boolean;
  value: Value;
  options: readonly Option<Value>[];
  onChange: (value: Value) => void;
}

export function Segmented<Value extends string>(props: SegmentedProps<Value>) {
  const { legend, compact = false, value, options, onChange } = props;
  const name = useId();
  return (
    <fieldset className="min-w-0">
      <legend className={compact ? 'sr-only' : 'mb-1.5 text-sm font-medium'}>{legend}</legend>
      <div className="inline-flex flex-wrap gap-0.5 rounded-lg border border-line bg-sunken p-0.5">
        {options.map((option) => (
          <label
            key={option.value}
            title={compact && option.icon ? option.label : undefined}
            className="relative flex min-h-8 items-center gap-2 rounded-md px-3 py-1 text-sm text-muted hover:text-ink has-checked:bg-surface has-checked:font-medium has-checked:text-ink has-checked:ring-1 has-checked:ring-control has-focus-visible:outline-2 has-focus-visible:outline-offset-2 has-focus-visible:outline-accent"
          >
            <input
              type="radio"
              className="sr-only"
              name={name}
              value={option.value}
              checked={option.value === value}
              onChange={() => onChange(option.value)}
            />
            {option.icon}
            <span className={compact && option.icon ? 'sr-only' : ''}>{option.label}</span>
          </label>
        ))}
      </div>
    </fieldset>
  );
}
