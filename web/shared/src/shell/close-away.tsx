// For what opens over a page and cannot be fetched: a word about it, and the page stays as it is.
import { useEffect, useEffectEvent } from 'react';
import { useI18n } from '../i18n/i18n';
import { toast } from '../ui/toast';

export function CloseAway({ onClose }: { onClose: () => void }) {
  const { t } = useI18n();
  const close = useEffectEvent(() => {
    toast('error', t(navigator.onLine ? 'state.unreachable' : 'state.offline'));
    onClose();
  });
  useEffect(() => close(), []);
  return null;
}
