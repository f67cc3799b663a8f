// That the platform leaves an instance alone, beside its name; until when is said on hover.
import { exact } from '@tidepool/shared/i18n/time';
import { Badge } from '@tidepool/shared/ui/badge';
import { useText } from '../messages';
import type { Instance } from '../records';

export function HeldBadge({ instance }: { instance: Pick<Instance, 'held_until'> }) {
  const { t, locale } = useText();
  if (!instance.held_until) return null;
  return (
    <span title={t('hold.until', { time: exact(Date.parse(instance.held_until), locale) })}>
      <Badge tone="busy">{t('hold.badge')}</Badge>
    </span>
  );
}
