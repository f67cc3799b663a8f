// Finds one of many by typing: the caller searches, the arrow keys choose.
import { useQuery } from '@tanstack/react-query';
import { useDeferredValue, useId, useState, type KeyboardEvent } from 'react';
import { errorText } from '../api/error-text';
import { useI18n } from '../i18n/i18n';

export interface Found {
  value: string;
  label: string;
  hint?: string;
}

interface ComboboxProps {
  label: string;
  /** The field's name in a form's data. */
  name?: string;
  placeholder?: string;
  hint?: string;
  error?: string | null;
  chosen: Found | null;
  onChoose: (found: Found | null) => void;
  queryKey: readonly unknown[];
  search: (text: string) => Promise<readonly Found[]>;
}

export function Combobox(props: ComboboxProps) {
  const { label, name, placeholder, hint, error, chosen, onChoose, queryKey, search } = props;
  const i18n = useI18n();
  const id = useId();
  const [text, setText] = useState<string | null>(null);
  const [open, setOpen] = useState(false);
  const [at, setAt] = useState(0);
  const wanted = useDeferredValue(text ?? '');
  const found = useQuery({
    queryKey: [...queryKey, 'search', wanted],
    queryFn: () => search(wanted),
    enabled: open,
    staleTime: 30_000,
  });
  const options = found.data ?? [];
  const active = options[Math.min(at, options.length - 1)];

  function choose(option: Found) {
    onChoose(option);
    setText(null);
    setOpen(false);
  }

  function keys(event: KeyboardEvent) {
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault();
      setOpen(true);
      const step = event.key === 'ArrowDown' ? 1 : options.length - 1;
      setAt(open && options.length > 0 ? (at + step) % options.length : 0);
    } else if (event.key === 'Enter' && open && active) {
      event.preventDefault();
      choose(active);
    } else if (event.key === 'Escape' && open) {
      event.preventDefault();
      event.stopPropagation();
      setOpen(false);
      setText(null);
    }
  }

  return (
    <div className="space-y-1.5">
      <label htmlFor={id} className="block text-sm font-medium">
        {label}
      </label>
      <div className="relative">
        {name !== undefined && <input type="hidden" name={name} value={chosen?.value ?? ''} />}
        <input
          id={id}
          role="combobox"
          autoComplete="off"
          spellCheck={false}
          aria-expanded={open}
          aria-controls={`${id}-list`}
          aria-autocomplete="list"
          aria-activedescendant={open && active ? `${id}-${active.value}` : undefined}
          aria-invalid={error ? true : undefined}
          aria-describedby={error ? `${id}-error` : hint ? `${id}-hint` : undefined}
          placeholder={placeholder}
          value={text ?? chosen?.label ?? ''}
          onChange={(event) => {
            setText(event.target.value);
            setOpen(true);
            setAt(0);
            if (event.target.value === '') onChoose(null);
          }}
          onClick={() => setOpen(true)}
          onBlur={() => {
            setOpen(false);
            setText(null);
          }}
          onKeyDown={keys}
          className={`min-h-11 w-full rounded-lg border bg-surface px-3 py-2 text-base placeholder:text-muted sm:text-[0.9375rem] ${error ? 'border-danger' : 'border-control'}`}
        />
        <div
          id={`${id}-list`}
          role="listbox"
          aria-label={label}
          hidden={!open}
          className="absolute inset-x-0 top-full z-20 mt-1 max-h-60 overflow-y-auto rounded-xl border border-line bg-surface p-1.5 shadow-high"
        >
          {open &&
            options.map((option) => (
              <div
                key={option.value}
                id={`${id}-${option.value}`}
                role="option"
                tabIndex={-1}
                aria-selected={option === active}
                // The field keeps the focus; a press chooses before the field's blur would close the list.
                onPointerDown={(event) => {
                  event.preventDefault();
                  choose(option);
                }}
                className="flex min-h-9 items-center gap-2 rounded-md px-2.5 py-1 text-sm aria-selected:bg-accent-soft aria-selected:text-accent-strong"
              >
                <span className="min-w-0 flex-1 truncate">{option.label}</span>
                {option.hint && <span className="shrink-0 text-xs text-muted">{option.hint}</span>}
              </div>
            ))}
          {open && options.length === 0 && (
            <div
              role="option"
              tabIndex={-1}
              aria-selected={false}
              aria-disabled="true"
              className="px-2.5 py-2 text-sm text-muted"
            >
              {found.isError
                ? errorText(found.error, i18n)
                : i18n.t(found.isPending ? 'state.loading' : 'table.noMatch')}
            </div>
          )}
        </div>
      </div>
      {hint && !error && (
        <p id={`${id}-hint`} className="text-sm text-muted">
          {hint}
        </p>
      )}
      {error && (
        <p id={`${id}-error`} role="alert" className="text-sm font-medium text-danger">
          {error}
        </p>
      )}
    </div>
  );
}
