// The OpenClaw that a server was prepared with, and whether its packages were checked.
import { Badge } from '@tidepool/shared/ui/badge';
import { useText } from '../messages';
import type { Server } from '../records';

export function OpenClaw({ server }: { server: Pick<Server, 'openclaw_version' | 'openclaw_pinned'> }) {
  const { t } = useText();
  if (server.openclaw_version === '') {
    return <span className="text-muted">{t('servers.notPrepared')}</span>;
  }
  return (
    <span className="inline-flex items-center gap-2">
      {server.openclaw_version}
      {!server.openclaw_pinned && (
        <span title={t('servers.notPinnedHint')}>
          <Badge>{t('servers.notPinned')}</Badge>
        </span>
      )}
    </span>
  );
}
