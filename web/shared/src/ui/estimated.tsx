// The mark of a number that is our estimate, not the provider's count; why is read out, and shown on hover.
import { useI18n } from '../i18n/i18n';

export function EstimatedMark({ when }: { when: boolean }) {
  const { t } = useI18n();
  if (!when) return null;
  return (
    <span role="img" aria-label={t('usage.estimated')} title={t('usage.estimated')} className="text-muted">
      {'≈\u00a0'}
    </span>
  );
}
