// The form that has the platform leave an instance alone until a time, for a reason.
import { Field } from '@tidepool/shared/ui/field';
import { FieldProblems } from '@tidepool/shared/ui/field-problems';
import { fieldText } from '@tidepool/shared/ui/form';
import { SelectField } from '@tidepool/shared/ui/select';
import { TextArea } from '@tidepool/shared/ui/text-area';
import { useState } from 'react';
import { FormDialog } from '../parts/form-dialog';
import { oneOf, type Instance } from '../records';
import { hold } from './actions';
import { useCompareText } from './compare-texts';
import { HOLD_CHOICES, holdEnd, type HoldChoice } from './hold-end';

interface HoldDialogProps {
  instance: Pick<Instance, 'id' | 'name'>;
  /** Of the hold that is changed. */
  reason?: string;
  onDone: () => void;
  onClose: () => void;
}

export function HoldDialog({ instance, reason, onDone, onClose }: HoldDialogProps) {
  const { t } = useCompareText();
  const [choice, setChoice] = useState<HoldChoice>('hours');
  return (
    <FormDialog
      title={t('hold.title', { name: instance.name })}
      lead={t('hold.text')}
      submit={t('hold.submit')}
      onClose={onClose}
      onDone={onDone}
      send={(data) => {
        const until = holdEnd(choice, fieldText(data, 'until'), Date.now());
        const why = fieldText(data, 'reason').trim();
        if (until === null) throw new FieldProblems({ until: t('hold.atRange') });
        if (why === '') throw new FieldProblems({ reason: t('hold.reasonNeeded') });
        return hold(instance.id, until.toISOString(), why);
      }}
    >
      {(refused) => (
        <>
          <SelectField
            label={t('hold.howLong')}
            value={choice}
            onChange={(event) => setChoice(oneOf(event.target.value, HOLD_CHOICES) ?? 'hours')}
            choices={HOLD_CHOICES.map((value) => ({ value, label: t(`hold.${value}`) }))}
          />
          {choice === 'other' && (
            <Field
              label={t('hold.at')}
              name="until"
              type="datetime-local"
              hint={t('hold.atHint')}
              error={refused('until')}
            />
          )}
          <TextArea
            label={t('hold.reason')}
            name="reason"
            rows={2}
            required
            maxLength={500}
            defaultValue={reason}
            hint={t('hold.reasonHint')}
            error={refused('reason')}
          />
        </>
      )}
    </FormDialog>
  );
}
