// One server: the connection test, its measurements over time, what runs on it and how much more would fit.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { errorText } from '@tidepool/shared/api/error-text';
import { RelativeTime } from '@tidepool/shared/i18n/time';
import { lazyPart } from '@tidepool/shared/lazy-part';
import { Page } from '@tidepool/shared/shell/page';
import { Button } from '@tidepool/shared/ui/button';
import { Confirm } from '@tidepool/shared/ui/confirm';
import { Menu } from '@tidepool/shared/ui/menu';
import { Facts, NotSet, Panel } from '@tidepool/shared/ui/panel';
import { ErrorState, Skeleton } from '@tidepool/shared/ui/states';
import { toast } from '@tidepool/shared/ui/toast';
import { PackageCheck, Pencil, Trash2 } from 'lucide-react';
import { Suspense, useState } from 'react';
import { useLocation, useParams } from 'wouter';
import { api } from '../api';
import { useMay } from '../me';
import { useText } from '../messages';
import { Capacity } from '../server/capacity';
import { Containers } from '../server/containers';
import { HostKeyFact } from '../server/host-key';
import { ServerLimits } from '../server/limits';
import { Metrics } from '../server/metrics';
import { OpenClaw } from '../server/openclaw';
import { SshKeyFact } from '../server/ssh-key';
import { ConnectionTest } from '../server/test';
import { useTaskToast } from '../task-drawer';

// Loaded when it is opened: a page's first load has a limit.
const Discovered = lazyPart(async () => ({ default: (await import('../server/discovered')).Discovered }));
const ServerForm = lazyPart(async () => ({ default: (await import('../server/form')).ServerForm }));

export default function ServerPage() {
  const { id } = useParams<{ id: string }>();
  return <OneServer key={id} id={decodeURIComponent(id)} />;
}

function OneServer({ id }: { id: string }) {
  const { t } = useText();
  const mayManage = useMay('servers.manage');
  const mayAdopt = useMay('instances.adopt');
  const server = useQuery({
    queryKey: ['servers', 'one', id],
    queryFn: () => unwrap(api.GET('/servers/{id}/detail', { params: { path: { id } } })),
  });
  const name = server.data?.name ?? id;
  return (
    <Page
      wide
      title={name}
      lead={
        server.data && (
          <code className="font-mono text-sm">
            {server.data.host === 'local'
              ? 'local'
              : `${server.data.ssh_user}@${server.data.host}:${server.data.ssh_port}`}
          </code>
        )
      }
      action={server.data && mayManage && <Actions server={server.data} />}
    >
      {server.data === undefined && server.isError ? (
        <ErrorState error={server.error} onRetry={() => void server.refetch()} />
      ) : server.data === undefined ? (
        <Skeleton lines={8} />
      ) : (
        <div className="grid items-start gap-4 xl:grid-cols-3">
          <div className="grid min-w-0 gap-4 xl:col-span-2">
            <Metrics id={id} />
            <Capacity instances={server.data.instances} stats={server.data.stats} />
            {mayAdopt && (
              <Suspense fallback={null}>
                <Discovered id={id} />
              </Suspense>
            )}
            <Containers id={id} />
          </div>
          <div className="grid min-w-0 gap-4">
            {mayManage && <ConnectionTest id={id} />}
            <ServerLimits id={id} name={server.data.name} />
            <Panel title={t('servers.facts')} query={server}>
              {(data) => (
                <Facts
                  rows={[
                    {
                      name: t('servers.status'),
                      value: t(data.status === 'disabled' ? 'servers.disabled' : 'servers.active'),
                    },
                    {
                      name: t('servers.hostKey'),
                      value: <HostKeyFact server={data} />,
                    },
                    {
                      name: t('servers.key'),
                      value: <SshKeyFact server={data} />,
                    },
                    {
                      name: t('servers.base'),
                      value: <code className="font-mono text-sm">{data.base_dir}</code>,
                    },
                    { name: 'OpenClaw', value: <OpenClaw server={data} /> },
                    ...(data.prepared_at
                      ? [{ name: t('servers.prepared'), value: <RelativeTime at={data.prepared_at} /> }]
                      : []),
                    {
                      name: t('instances.notes'),
                      value: data.notes ? (
                        <span className="whitespace-pre-wrap">{data.notes}</span>
                      ) : (
                        <NotSet />
                      ),
                    },
                  ]}
                />
              )}
            </Panel>
          </div>
        </div>
      )}
    </Page>
  );
}

function Actions({ server }: { server: Parameters<typeof ServerForm>[0]['server'] & object }) {
  const i18n = useText();
  const { t } = i18n;
  const client = useQueryClient();
  const [, navigate] = useLocation();
  const notify = useTaskToast();
  const [editing, setEditing] = useState(false);
  const [deleting, setDeleting] = useState(false);
  const prepare = useMutation({
    mutationFn: () => unwrap(api.POST('/servers/{id}/prepare', { params: { path: { id: server.id } } })),
    onSuccess: ({ task_id }) => notify(task_id, t('servers.preparing')),
    onError: (error) => toast('error', errorText(error, i18n)),
  });
  return (
    <>
      <Button busy={prepare.isPending} onClick={() => prepare.mutate()}>
        {!prepare.isPending && <PackageCheck className="size-4" aria-hidden="true" />}
        {t('servers.prepare')}
      </Button>
      <Button onClick={() => setEditing(true)}>
        <Pencil className="size-4" aria-hidden="true" />
        {t('instances.edit')}
      </Button>
      <Menu
        label={t('servers.actionsOf', { name: server.name })}
        entries={[{ label: t('servers.delete'), icon: Trash2, danger: true, run: () => setDeleting(true) }]}
      />
      {editing && (
        <Suspense fallback={null}>
          <ServerForm server={server} onClose={() => setEditing(false)} />
        </Suspense>
      )}
      {deleting && (
        <Confirm
          title={t('servers.deleteTitle', { name: server.name })}
          name={server.id}
          confirm={t('servers.delete')}
          run={() => unwrap(api.DELETE('/servers/{id}', { params: { path: { id: server.id } } }))}
          onDone={() => {
            void client.invalidateQueries({ queryKey: ['servers', 'list'] });
            toast('success', t('servers.deleted', { name: server.name }));
            navigate('/servers');
          }}
          onClose={() => setDeleting(false)}
        >
          <p>{t('servers.deleteText')}</p>
        </Confirm>
      )}
    </>
  );
}
