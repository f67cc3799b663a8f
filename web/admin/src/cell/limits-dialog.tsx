// The limits that an instance, a profession or a server sets: four numbers, each of which may be left empty; and how a
// limit is written.
import { Field } from '@tidepool/shared/ui/field';
import { toast } from '@tidepool/shared/ui/toast';
import { useFormat } from '../format';
import { useText } from '../messages';
import { FieldProblems } from '../parts/field-problems';
import { FormDialog } from '../parts/form-dialog';
import type { LimitValues } from '../records';
import { LIMITS, PLATFORM, RANGES, readLimits, type Limit } from './limits';

interface LimitsDialogProps<Answer> {
  /** Whose they are. */
  name: string;
  lead: string;
  values: LimitValues;
  /** What holds where a field is empty; undefined while that is not known. */
  otherwise: (limit: Limit) => string | undefined;
  save: (values: LimitValues) => Promise<Answer>;
  onDone: (answer: Answer) => void;
  onClose: () => void;
}

export function LimitsDialog<Answer>(props: LimitsDialogProps<Answer>) {
  const { name, lead, values, otherwise, save, onDone, onClose } = props;
  const { t, number } = useText();
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
      send={async (data) => {
        const read = readLimits(data);
        if ('values' in read) return save(read.values);
        const texts = LIMITS.flatMap((limit) => {
          const problem = read.problems[limit];
          if (problem === undefined) return [];
          return [[limit, t(`cell.${problem}`, { ...range(limit), example: PLATFORM[limit] })] as const];
        });
        throw new FieldProblems(Object.fromEntries(texts));
      }}
    >
      {(refused) => (
        <div className="grid gap-4 sm:grid-cols-2">
          {LIMITS.map((limit) => (
            <Field
              key={limit}
              label={t(`cell.field.${limit}`)}
              name={limit}
              inputMode="numeric"
              autoComplete="off"
              defaultValue={values[limit] ?? ''}
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

/** Writes a limit with its unit. */
export function useLimitText() {
  const { t, number } = useText();
  const format = useFormat();
  return (limit: Limit, value: number) => {
    switch (limit) {
      case 'memory_mib':
      case 'disk_mib':
        return format.mebibytes(value);
      case 'cpu_percent':
        return t('cell.cpuValue', { percent: format.percent(value) });
      case 'tasks':
        return t('cell.tasksValue', { count: number(value) });
    }
  };
}
