// An instance's health in a word and a form.
import { Status, type Tone } from '@tidepool/shared/ui/badge';
import { useText } from '../messages';
import type { Health } from '../records';

export const HEALTH_TONES: Record<Health, Tone> = {
  healthy: 'good',
  unhealthy: 'bad',
  key_invalid: 'bad',
  rate_limited: 'warn',
  unknown: 'none',
};

export function HealthStatus({ health }: { health: Health }) {
  const { t } = useText();
  return <Status tone={HEALTH_TONES[health]}>{t(`health.${health}`)}</Status>;
}
