// A labelled text of several lines, and a labelled box to tick.
import { useId, type ComponentProps } from 'react';

interface TextAreaProps extends ComponentProps<'textarea'> {
  label: string;
  hint?: string;
  error?: string | null;
  /** For code and lists, where every character counts. */
  mono?: boolean;
}

export function TextArea({ label, hint, error, mono = false, ...area }: TextAreaProps) {
  const id = useId();
  const described = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(' ');
  return (
    <div className="space-y-1.5">
      <label htmlFor={id} className="block text-sm font-medium">
        {label}
      </label>
      <textarea
        rows={4}
        {...area}
        id={id}
        spellCheck={!mono}
        aria-invalid={error ? true : undefined}
        aria-describedby={described || undefined}
        className={`block w-full rounded-lg border bg-surface px-3 py-2 text-base placeholder:text-muted ${mono ? 'font-mono sm:text-[0.8125rem]' : 'sm:text-[0.9375rem]'} ${error ? 'border-danger' : 'border-control'}`}
      />
      {hint && (
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

interface CheckFieldProps extends ComponentProps<'input'> {
  label: string;
  hint?: string;
}

export function CheckField({ label, hint, ...input }: CheckFieldProps) {
  const id = useId();
  return (
    <div className="flex gap-2.5">
      <input
        {...input}
        id={id}
        type="checkbox"
        aria-describedby={hint ? `${id}-hint` : input['aria-describedby']}
        className="mt-1 size-4 shrink-0 accent-accent"
      />
      <div>
        {/* In the dark a box that cannot be ticked looks almost like any other. */}
        <label htmlFor={id} className={`text-sm font-medium ${input.disabled ? 'text-muted' : ''}`}>
          {label}
        </label>
        {hint && (
          <p id={`${id}-hint`} className="text-sm text-muted">
            {hint}
          </p>
        )}
      </div>
    </div>
  );
}
