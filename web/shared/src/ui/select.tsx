// A choice out of a list: the browser's own select, which every keyboard and phone knows, in two looks.
import { ChevronDown } from 'lucide-react';
import { useId, type ComponentProps } from 'react';

export interface Choice {
  value: string;
  label: string;
}

interface SelectProps extends ComponentProps<'select'> {
  label: string;
  choices: readonly Choice[];
  hint?: string;
}

/** With its label above, for forms. */
export function SelectField({ label, choices, hint, ...select }: SelectProps) {
  const id = useId();
  return (
    <div className="space-y-1.5">
      <label htmlFor={id} className="block text-sm font-medium">
        {label}
      </label>
      <div className="relative">
        <select
          {...select}
          id={id}
          aria-describedby={hint ? `${id}-hint` : undefined}
          className="min-h-11 w-full appearance-none rounded-lg border border-control bg-surface py-2 ps-3 pe-9 text-base text-ink sm:text-[0.9375rem]"
        >
          <Options choices={choices} />
        </select>
        <ChevronDown
          className="pointer-events-none absolute end-3 top-1/2 size-4 -translate-y-1/2 text-muted"
          aria-hidden="true"
        />
      </div>
      {hint && (
        <p id={`${id}-hint`} className="text-sm text-muted">
          {hint}
        </p>
      )}
    </div>
  );
}

/** Small, its label said by the first choice and to screen readers, for bars of filters. */
export function SelectChip({ label, choices, ...select }: Omit<SelectProps, 'hint'>) {
  const chosen = select.value !== undefined && select.value !== '';
  return (
    <div className="relative">
      <select
        {...select}
        aria-label={label}
        className={`min-h-9 max-w-48 appearance-none truncate rounded-lg border py-1 ps-3 pe-8 text-sm ${chosen ? 'border-accent bg-accent-soft font-medium text-accent-strong' : 'border-control/60 bg-surface text-ink hover:border-control'}`}
      >
        <Options choices={choices} />
      </select>
      <ChevronDown
        className="pointer-events-none absolute end-2.5 top-1/2 size-4 -translate-y-1/2 text-muted"
        aria-hidden="true"
      />
    </div>
  );
}

function Options({ choices }: { choices: readonly Choice[] }) {
  return choices.map(({ value, label }) => (
    <option key={value} value={value}>
      {label}
    </option>
  ));
}
