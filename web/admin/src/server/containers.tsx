// The containers on a server, read there now; each can be started, stopped, restarted, and its log read.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { errorText } from '@tidepool/shared/api/error-text';
import { Status } from '@tidepool/shared/ui/badge';
import { Confirm } from '@tidepool/shared/ui/confirm';
import { Dialog } from '@tidepool/shared/ui/dialog';
import { Menu } from '@tidepool/shared/ui/menu';
import { Card } from '@tidepool/shared/ui/panel';
import { EmptyState } from '@tidepool/shared/ui/states';
import { toast } from '@tidepool/shared/ui/toast';
import { Play, RotateCw, ScrollText, Square } from 'lucide-react';
import { useState } from 'react';
import { api } from '../api';
import { useMay } from '../me';
import { useText } from '../messages';
import { QueryState } from '../parts/query-state';
import type { Container } from '../records';

export function Containers({ id }: { id: string }) {
  const i18n = useText();
  const { t } = i18n;
  const client = useQueryClient();
  const mayManage = useMay('servers.manage');
  const [stopping, setStopping] = useState<{ container: Container; action: 'stop' | 'restart' } | null>(null);
  const [log, setLog] = useState<{ name: string; text: string } | null>(null);
  const containers = useQuery({
    queryKey: ['servers', 'containers', id],
    queryFn: () => unwrap(api.GET('/servers/{id}/containers', { params: { path: { id } } })),
    retry: false,
  });
  const act = async ({ container, action }: { container: Container; action: string }) => {
    const path = { id, cid: container.id, action };
    const answer = await unwrap(api.POST('/servers/{id}/containers/{cid}/{action}', { params: { path } }));
    if (action === 'logs') setLog({ name: container.name, text: answer.logs ?? '' });
    else await client.invalidateQueries({ queryKey: ['servers', 'containers', id] });
  };
  const run = useMutation({ mutationFn: act, onError: (error) => toast('error', errorText(error, i18n)) });
  return (
    <Card title={t('containers.title')}>
      <QueryState query={containers}>
        {({ list }) =>
          list.length === 0 ? (
            <EmptyState title={t('containers.none')}>{t('containers.noneText')}</EmptyState>
          ) : (
            <ul className="divide-y divide-line">
              {list.map((container) => (
                <li key={container.id} className="flex flex-wrap items-center gap-x-4 gap-y-1 py-2 text-sm">
                  <span className="min-w-0 flex-1 basis-48">
                    <span className="font-medium">{container.name}</span>
                    <span className="block truncate text-muted">{container.image}</span>
                  </span>
                  <span className="font-mono text-xs text-muted">{container.ports}</span>
                  <Status tone={/^(up|running)/i.test(container.status) ? 'good' : 'bad'}>
                    {container.status}
                  </Status>
                  {mayManage && (
                    <Menu
                      label={t('containers.actionsOf', { name: container.name })}
                      entries={[
                        {
                          label: t('containers.start'),
                          icon: Play,
                          run: () => run.mutate({ container, action: 'start' }),
                        },
                        {
                          label: t('containers.logs'),
                          icon: ScrollText,
                          run: () => run.mutate({ container, action: 'logs' }),
                        },
                        {
                          label: t('containers.restart'),
                          icon: RotateCw,
                          run: () => setStopping({ container, action: 'restart' }),
                        },
                        {
                          label: t('containers.stop'),
                          icon: Square,
                          danger: true,
                          run: () => setStopping({ container, action: 'stop' }),
                        },
                      ]}
                    />
                  )}
                </li>
              ))}
            </ul>
          )
        }
      </QueryState>
      {stopping && (
        <Confirm
          title={t(stopping.action === 'stop' ? 'containers.stopTitle' : 'containers.restartTitle', {
            name: stopping.container.name,
          })}
          name={stopping.action === 'stop' ? stopping.container.name : undefined}
          confirm={t(`containers.${stopping.action}`)}
          run={() => act(stopping)}
          onClose={() => setStopping(null)}
        >
          <p>{t('containers.stopText', { image: stopping.container.image })}</p>
        </Confirm>
      )}
      {log && (
        <Dialog
          open
          onClose={() => setLog(null)}
          title={t('containers.logOf', { name: log.name })}
          width="wide"
        >
          <pre className="font-mono text-xs whitespace-pre-wrap">{log.text || t('log.none')}</pre>
        </Dialog>
      )}
    </Card>
  );
}
