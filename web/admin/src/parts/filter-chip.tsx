// One filter of a table: a choice that the address keeps.
import type { TableState } from '@tidepool/shared/table/table-state';
import { SelectChip, type Choice } from '@tidepool/shared/ui/select';

interface FilterChipProps {
  state: TableState;
  name: string;
  label: string;
  choices: readonly Choice[];
}

export function FilterChip({ state, name, label, choices }: FilterChipProps) {
  const value = state.filters[name] ?? '';
  // What the address asks for stays to be seen, even when it is none of the choices.
  const known = value === '' || choices.some((choice) => choice.value === value);
  return (
    <SelectChip
      label={label}
      value={value}
      onChange={(event) => state.set({ [name]: event.target.value })}
      choices={[{ value: '', label }, ...(known ? [] : [{ value, label: value }]), ...choices]}
    />
  );
}

interface DateChipProps {
  state: TableState;
  name: string;
  label: string;
}

export function DateChip({ state, name, label }: DateChipProps) {
  const value = state.filters[name] ?? '';
  return (
    <label className="flex min-h-9 items-center gap-2 rounded-lg border border-control/60 bg-surface ps-3 pe-2 text-sm text-muted hover:border-control">
      {label}
      <input
        type="date"
        value={value}
        onChange={(event) => state.set({ [name]: event.target.value })}
        className="min-h-7 rounded bg-transparent text-ink"
      />
    </label>
  );
}
