// A labelled input with its hint and its error bound to it, and the password variant that can be shown.
import { Eye, EyeOff } from 'lucide-react';
import { useId, useState, type ComponentProps } from 'react';
import { useI18n } from '../i18n/i18n';

interface FieldProps extends ComponentProps<'input'> {
  label: string;
  hint?: string;
  error?: string | null;
}

const INPUT =
  'w-full min-h-11 rounded-lg border bg-surface px-3 py-2 text-base text-ink placeholder:text-muted sm:text-[0.9375rem]';

export function Field({ label, hint, error, className = '', children, ...input }: FieldProps) {
  const own = useId();
  const id = input.id ?? own;
  const described = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(' ');
  return (
    <div className="space-y-1.5">
      <label id={`${id}-label`} htmlFor={id} className="block text-sm font-medium">
        {label}
      </label>
      <div className="relative">
        <input
          {...input}
          id={id}
          className={`${INPUT} ${error ? 'border-danger' : 'border-control'} ${className}`}
          aria-invalid={error ? true : undefined}
          aria-describedby={described || undefined}
        />
        {children}
      </div>
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

export function PasswordField(props: Omit<FieldProps, 'type'>) {
  const { t } = useI18n();
  const [shown, setShown] = useState(false);
  const Icon = shown ? EyeOff : Eye;
  return (
    <Field
      {...props}
      type={shown ? 'text' : 'password'}
      spellCheck={false}
      autoCapitalize="off"
      className="pe-12"
    >
      <button
        type="button"
        className="absolute inset-y-0 end-0 flex w-11 items-center justify-center rounded-lg text-muted hover:text-ink"
        aria-label={t(shown ? 'password.hide' : 'password.show')}
        onClick={() => setShown(!shown)}
      >
        <Icon className="size-4.5" aria-hidden="true" />
      </button>
    </Field>
  );
}
