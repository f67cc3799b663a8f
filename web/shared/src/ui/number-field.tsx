// A field for a number, with the box beside it that stands for no number where that is possible: an empty field means
// nothing by itself. `readNumbers` reads both.
import { useId, useState } from 'react';
import { useI18n } from '../i18n/i18n';
import { Field } from './field';
import { noneOf, writeNumber, type NumberSpec } from './number';
import { CheckField } from './text-area';

interface NumberFieldProps {
  name: string;
  label: string;
  spec: NumberSpec;
  /** What it begins with; null or undefined is no number. */
  value?: number | null;
  hint?: string;
  placeholder?: string;
  error?: string | null;
}

export function NumberField({ name, spec, value, ...field }: NumberFieldProps) {
  const { locale } = useI18n();
  const id = useId();
  const [text, setText] = useState(value == null ? '' : writeNumber(value, locale));
  const [isNone, setNone] = useState(value == null && spec.none !== undefined);
  return (
    <div className="space-y-1.5">
      <Field
        {...field}
        id={id}
        name={name}
        inputMode={spec.decimals === undefined ? 'numeric' : 'decimal'}
        autoComplete="off"
        value={text}
        onChange={(event) => {
          setText(event.target.value);
          setNone(false);
        }}
      />
      {spec.none !== undefined && (
        <CheckField
          name={noneOf(name)}
          label={spec.none}
          // A form may have several such boxes.
          aria-describedby={`${id}-label`}
          checked={isNone}
          onChange={(event) => {
            setNone(event.target.checked);
            if (event.target.checked) setText('');
          }}
        />
      )}
    </div>
  );
}
