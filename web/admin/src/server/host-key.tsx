// By what a server is known: the key that it showed, and what that was compared with.
import { Badge } from '@tidepool/shared/ui/badge';
import { useText } from '../messages';
import type { Server } from '../records';

type Known = Pick<
  Server,
  'host_key_trust' | 'host_key_fingerprint' | 'expected_fingerprint' | 'expected_host_key'
>;

/** A word for lists. */
export function HostKeyTrust({ server }: { server: Known }) {
  const { t } = useText();
  switch (server.host_key_trust) {
    case 'first_use':
      return <Badge tone="warn">{t('servers.firstUse')}</Badge>;
    case 'compared':
      return <Badge tone="good">{t('servers.compared')}</Badge>;
    case 'certified':
      return <Badge tone="good">{t('servers.certified')}</Badge>;
    case 'local':
      return <span className="text-muted">{t('servers.thisMachine')}</span>;
  }
}

/** All that is known, for the server's page. */
export function HostKeyFact({ server }: { server: Known }) {
  const { t } = useText();
  const { host_key_trust: trust, host_key_fingerprint: seen, expected_fingerprint: fingerprint } = server;
  const isSeen = seen !== '';
  const text = {
    local: () => t('servers.localText'),
    first_use: () => t(isSeen ? 'servers.firstUseText' : 'servers.firstUseNext'),
    compared: () => (isSeen ? t('servers.comparedText') : t('servers.comparedNext', { fingerprint })),
    certified: () => t(isSeen ? 'servers.certifiedText' : 'servers.certifiedNext', { fingerprint }),
  }[trust];
  return (
    <>
      {isSeen && <code className="block font-mono text-xs break-all">{seen}</code>}
      {/* A fingerprint in it has no place at which a line could end. */}
      <span
        className={`mt-1 block text-sm wrap-anywhere ${trust === 'first_use' ? 'text-warning' : 'text-muted'}`}
      >
        {text()}
      </span>
    </>
  );
}
