// What is, or shall be, on the own instances; shown on the marketplace and, for one instance, on its own page.
import { useMutation } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { Button } from '@tidepool/shared/ui/button';
import { Confirm } from '@tidepool/shared/ui/confirm';
import { Panel } from '@tidepool/shared/ui/panel';
import { EmptyState } from '@tidepool/shared/ui/states';
import { PackageCheck } from 'lucide-react';
import { useState } from 'react';
import { Link } from 'wouter';
import { api } from '../api';
import { useText } from '../messages';
import { InstallBadge } from './install-state';
import { useInstalls, useRefreshInstalls, type Install } from './queries';

export function Installs({ instance }: { instance?: string }) {
  const { t } = useText();
  const installs = useInstalls();
  const [removing, setRemoving] = useState<Install | null>(null);
  const refresh = useRefreshInstalls();
  const remove = useMutation({
    mutationFn: (id: string) => unwrap(api.DELETE('/me/installs/{id}', { params: { path: { id } } })),
    onSettled: refresh,
  });
  const mine = (list: readonly Install[]) =>
    list.filter((one) => instance === undefined || one.instance_id === instance);
  return (
    <Panel
      title={t('installs.title')}
      icon={<PackageCheck aria-hidden="true" />}
      query={installs}
      empty={{
        when: (list) => mine(list).length === 0,
        show: (
          <EmptyState title={t('installs.none')}>
            {instance === undefined ? (
              t('installs.noneHint')
            ) : (
              <Link href="/marketplace" className="font-medium text-accent hover:underline">
                {t('installs.toMarketplace')}
              </Link>
            )}
          </EmptyState>
        ),
      }}
    >
      {(list) => (
        <ul className="divide-y divide-line">
          {mine(list).map((one) => (
            <li
              key={one.id}
              className="flex flex-wrap items-center gap-x-3 gap-y-1 py-2.5 first:pt-0 last:pb-0"
            >
              <span aria-hidden="true" className="text-xl">
                {one.item_icon}
              </span>
              <div className="min-w-0 flex-1 basis-40">
                <p className="text-sm font-medium">{one.item_name}</p>
                <p className="text-xs text-muted">
                  {instance === undefined && `${one.instance_name} · `}
                  {one.item_version}
                </p>
                {one.state === 'failed' && one.error && <p className="text-xs text-danger">{one.error}</p>}
              </div>
              <InstallBadge state={one.state} />
              {one.state !== 'removing' && one.state !== 'installing' && (
                <Button
                  size="small"
                  look="quiet"
                  aria-label={t('installs.removeNamed', { name: one.item_name })}
                  onClick={() => setRemoving(one)}
                >
                  {t('installs.remove')}
                </Button>
              )}
            </li>
          ))}
          {removing && (
            <Confirm
              title={t('installs.removeNamed', { name: removing.item_name })}
              confirm={t('installs.remove')}
              run={() => remove.mutateAsync(removing.id)}
              onClose={() => setRemoving(null)}
            >
              {t('installs.removeText', { name: removing.item_name, instance: removing.instance_name })}
            </Confirm>
          )}
        </ul>
      )}
    </Panel>
  );
}
