// As whom an instance runs on its server, where that is not a user of its own.
import { Badge } from '@tidepool/shared/ui/badge';
import { useText } from '../messages';
import type { Instance } from '../records';

/** Whether employees may claim it and pools may hold it. */
export const isOffered = (instance: Instance) =>
  instance.isolation === 'own' || instance.isolation === 'none';

export function RunsAs({ instance }: { instance: Instance }) {
  const { t } = useText();
  if (isOffered(instance) || instance.runs_as === '') return null;
  return <Badge tone="warn">{t('instances.runsAsBadge', { user: instance.runs_as })}</Badge>;
}
