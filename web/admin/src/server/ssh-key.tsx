// The key with which a server is logged in to, and the way to remove a stored one: the server's form can only replace it.
import { useQueryClient } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { Button } from '@tidepool/shared/ui/button';
import { Confirm } from '@tidepool/shared/ui/confirm';
import { NotSet } from '@tidepool/shared/ui/panel';
import { toast } from '@tidepool/shared/ui/toast';
import { useState } from 'react';
import { api } from '../api';
import { useMay } from '../me';
import { useText } from '../messages';
import type { Server } from '../records';

export function SshKeyFact({ server }: { server: Server }) {
  const { t } = useText();
  const client = useQueryClient();
  const mayManage = useMay('servers.manage');
  const [removing, setRemoving] = useState(false);
  if (!server.has_ssh_key) return server.ssh_key_path || <NotSet />;
  return (
    <span className="flex flex-wrap items-center gap-x-3 gap-y-1">
      {t('servers.keyStored')}
      {mayManage && (
        <Button size="small" look="danger" onClick={() => setRemoving(true)}>
          {t('servers.keyRemove')}
        </Button>
      )}
      {removing && (
        <Confirm
          title={t('servers.keyRemoveTitle', { name: server.name })}
          name={server.id}
          confirm={t('servers.keyRemove')}
          run={() =>
            unwrap(
              api.PATCH('/servers/{id}', { params: { path: { id: server.id } }, body: { ssh_key: null } }),
            )
          }
          onDone={() => {
            void client.invalidateQueries({ queryKey: ['servers'] });
            toast('success', t('servers.saved', { name: server.name }));
          }}
          onClose={() => setRemoving(false)}
        >
          <p>
            {server.ssh_key_path
              ? t('servers.keyRemoveFile', { path: server.ssh_key_path })
              : t('servers.keyRemoveText')}
          </p>
        </Confirm>
      )}
    </span>
  );
}
