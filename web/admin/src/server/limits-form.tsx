// The form of a server's limits.
import { useQueryClient } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { api } from '../api';
import { PLATFORM } from '../cell/limits';
import { LimitsDialog } from '../cell/limits-dialog';
import { useText } from '../messages';
import type { LimitValues } from '../records';

interface LimitsFormProps {
  id: string;
  name: string;
  values: LimitValues;
  onClose: () => void;
}

export default function LimitsForm({ id, name, values, onClose }: LimitsFormProps) {
  const { t } = useText();
  const client = useQueryClient();
  return (
    <LimitsDialog
      name={name}
      lead={t('cell.serverLimitsLead')}
      values={values}
      otherwise={(limit) => String(PLATFORM[limit])}
      save={(body) => unwrap(api.PUT('/servers/{id}/limits', { params: { path: { id } }, body }))}
      onDone={(saved) => {
        client.setQueryData(['cell', 'server', id], saved);
        for (const root of ['cell', 'tasks']) void client.invalidateQueries({ queryKey: [root] });
      }}
      onClose={onClose}
    />
  );
}
