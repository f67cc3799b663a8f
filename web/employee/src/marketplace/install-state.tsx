// How far an install is, in one badge.
import { Badge, type Tone } from '@tidepool/shared/ui/badge';
import { useText } from '../messages';
import type { Install } from './queries';

const TONES: Record<Install['state'], Tone> = {
  pending: 'busy',
  installing: 'busy',
  installed: 'good',
  failed: 'bad',
  removing: 'busy',
};

export function InstallBadge({ state }: { state: Install['state'] }) {
  const { t } = useText();
  return <Badge tone={TONES[state]}>{t(`install.${state}`)}</Badge>;
}
