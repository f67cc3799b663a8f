// What stands where a server has nothing to offer: neither empty nor broken.
import { useText } from '../messages';

export function NotAvailable() {
  const { t } = useText();
  return <p className="text-sm text-muted">{t('assistant.notOffered')}</p>;
}
