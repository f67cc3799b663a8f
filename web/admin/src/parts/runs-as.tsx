// As whom an instance runs on its server, where that is not a user of its own.
import { Badge } from '@tidepool/shared/ui/badge';
import { useText, type Key } from '../messages';
import type { Instance } from '../records';

/** Whether employees may claim it and pools may hold it. */
export const isOffered = (instance: Pick<Instance, 'isolation'>) =>
  instance.isolation === 'own' || instance.isolation === 'none';

/** Whether its user, home or container stays as it is when the holder changes and when the instance is deleted. */
export const isNeverCleaned = (instance: Pick<Instance, 'isolation'>) =>
  instance.isolation === 'adopted' || instance.isolation === 'shared';

type Seen = Pick<Instance, 'isolation' | 'runs_as' | 'container_id'>;

/** In a few words; nothing for an instance with a user of its own. */
export function runsAsText(
  instance: Seen,
  t: (key: Key, values?: Record<string, string>) => string,
): string | null {
  if (isOffered(instance)) return null;
  // Its user is its own; what matters is that it can become root.
  if (instance.isolation === 'opened') return t('instances.openedBadge');
  if (instance.runs_as !== '') return t('instances.runsAsBadge', { user: instance.runs_as });
  if (instance.isolation === 'unknown') return t('instances.notSeenBadge');
  if (instance.container_id !== '') return t('instances.containerBadge');
  return t('instances.notOwnBadge');
}

export function RunsAs({ instance }: { instance: Seen }) {
  const { t } = useText();
  const text = runsAsText(instance, t);
  if (text === null) return null;
  return (
    <span title={t(`instances.isolation.${instance.isolation}`)}>
      <Badge tone="warn">{text}</Badge>
    </span>
  );
}
