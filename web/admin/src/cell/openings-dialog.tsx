// What a cell leaves open, for super administrators: each opening says what it gives, and which of them are root.
import { unwrap } from '@tidepool/shared/api/envelope';
import { Notice } from '@tidepool/shared/ui/notice';
import { CheckField } from '@tidepool/shared/ui/text-area';
import { toast } from '@tidepool/shared/ui/toast';
import { api } from '../api';
import { useText } from '../messages';
import { FormDialog } from '../parts/form-dialog';
import type { CellDetail, CellOpening, Instance } from '../records';

export const OPENINGS = ['browser', 'devices', 'docker', 'sudo'] as const satisfies readonly CellOpening[];

interface OpeningsDialogProps {
  instance: Instance;
  cell: CellDetail;
  onDone: (cell: CellDetail) => void;
  onClose: () => void;
}

export function OpeningsDialog({ instance, cell, onDone, onClose }: OpeningsDialogProps) {
  const { t } = useText();
  const { openings } = cell;
  /** The server refuses what would make a pooled instance count as root; what is open already can be closed. */
  const isRefused = (one: CellOpening) => instance.pooled && one !== 'browser' && !openings.includes(one);
  return (
    <FormDialog<CellDetail>
      title={t('cell.openingsTitle', { name: instance.name })}
      lead={t(cell.state === 'confined' ? 'cell.openingsLead' : 'cell.openingsLater')}
      submit={t('dialog.save')}
      onClose={onClose}
      onDone={(saved) => {
        toast('success', t('cell.openingsSaved', { name: instance.name }));
        onDone(saved);
      }}
      send={(data) =>
        unwrap(
          api.PUT('/instances/{id}/cell/openings', {
            params: { path: { id: instance.id } },
            body: { openings: OPENINGS.filter((one) => data.has(one)) },
          }),
        )
      }
    >
      {() => (
        <>
          {OPENINGS.map((one) => (
            <CheckField
              key={one}
              name={one}
              label={t(`cell.opening.${one}`)}
              hint={t(`cell.opening.${one}Text`)}
              defaultChecked={openings.includes(one)}
              disabled={isRefused(one)}
            />
          ))}
          <Notice tone="warning">{t('cell.openingsWarning')}</Notice>
          {OPENINGS.some(isRefused) && <p className="text-sm">{t('cell.openingsPooled')}</p>}
        </>
      )}
    </FormDialog>
  );
}
