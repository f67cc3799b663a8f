// The limits that an instance, a profession or a server sets: four numbers, each of which may be not set.
import { readNumbers, type NumberSpec } from '@tidepool/shared/ui/number';
import { NumberField } from '@tidepool/shared/ui/number-field';
import { toast } from '@tidepool/shared/ui/toast';
import { useText } from '../messages';
import { FormDialog } from '../parts/form-dialog';
import type { LimitValues } from '../records';
import { LIMITS, RANGES, type Limit } from './limits';

interface LimitsDialogProps<Answer> {
  /** Whose they are. */
  name: string;
  lead: string;
  values: LimitValues;
  /** What holds where a limit is not set; undefined while that is not known. */
  otherwise: (limit: Limit) => string | undefined;
  save: (values: LimitValues) => Promise<Answer>;
  onDone: (answer: Answer) => void;
  onClose: () => void;
}

export function LimitsDialog<Answer>(props: LimitsDialogProps<Answer>) {
  const { name, lead, values, otherwise, save, onDone, onClose } = props;
  const i18n = useText();
  const { t, number } = i18n;
  const numbers = Object.fromEntries(
    LIMITS.map((limit) => [limit, { ...RANGES[limit], none: t('cell.notSet') }]),
  ) as Record<Limit, NumberSpec & { none: string }>;
  const range = (limit: Limit) => ({ min: number(RANGES[limit].min), max: number(RANGES[limit].max) });
  return (
    <FormDialog<Answer>
      title={t('cell.limitsOf', { name })}
      lead={lead}
      submit={t('dialog.save')}
      onClose={onClose}
      onDone={(answer) => {
        toast('success', t('cell.limitsSaved', { name }));
        onDone(answer);
      }}
      send={(data) => save(readNumbers(data, numbers, i18n))}
    >
      {(refused) => (
        <div className="grid gap-4 sm:grid-cols-2">
          {LIMITS.map((limit) => (
            <NumberField
              key={limit}
              label={t(`cell.field.${limit}`)}
              name={limit}
              spec={numbers[limit]}
              value={values[limit]}
              placeholder={otherwise(limit)}
              hint={t(`cell.hint.${limit}`, range(limit))}
              error={refused(limit)}
            />
          ))}
        </div>
      )}
    </FormDialog>
  );
}
