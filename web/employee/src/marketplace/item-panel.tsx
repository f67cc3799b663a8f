// One item from close by: what it brings, file by file, what looks dangerous in it, and on which instance it goes.
import { useMutation } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { errorText } from '@tidepool/shared/api/error-text';
import { Badge } from '@tidepool/shared/ui/badge';
import { Button } from '@tidepool/shared/ui/button';
import { Confirm } from '@tidepool/shared/ui/confirm';
import { SidePanel } from '@tidepool/shared/ui/dialog';
import { Notice } from '@tidepool/shared/ui/notice';
import { SelectField } from '@tidepool/shared/ui/select';
import { ErrorState, Skeleton } from '@tidepool/shared/ui/states';
import { useState } from 'react';
import { Link } from 'wouter';
import { api } from '../api';
import { TaskProgress } from '../claim/task-progress';
import { useInstances, type Instance } from '../instances-query';
import { useText } from '../messages';
import { Files, FindingList } from './files';
import { InstallBadge } from './install-state';
import { useInstalls, useItem, useRefreshInstalls, type ItemDetail } from './queries';

export function ItemPanel({ id, name, onClose }: { id: string; name: string; onClose: () => void }) {
  const { t } = useText();
  const item = useItem(id);
  const { data } = item;
  return (
    <SidePanel
      open
      onClose={onClose}
      title={data ? `${data.icon} ${data.name}` : name}
      lead={
        data && (
          <span className="flex flex-wrap items-center gap-2">
            <Badge>{t(`type.${data.type}`)}</Badge>
            {t('item.version', { version: data.version })} ·{' '}
            {t('item.installs', { count: data.install_count })}
          </span>
        )
      }
    >
      {data === undefined ? (
        item.isError ? (
          <ErrorState error={item.error} onRetry={() => void item.refetch()} />
        ) : (
          <Skeleton lines={8} />
        )
      ) : (
        <div className="space-y-6">
          <p>{data.description}</p>
          {data.finding_count > 0 && (
            <Notice tone="warning">
              <p className="font-medium">{t('item.findings', { count: data.finding_count })}</p>
              <p>{t('item.findingsHint')}</p>
            </Notice>
          )}
          <InstallForm item={data} />
          <Files files={data.files} />
        </div>
      )}
    </SidePanel>
  );
}

function fits(item: ItemDetail, instance: Instance): boolean {
  return (
    item.professions.length === 0 ||
    item.professions.some((profession) => profession.id === instance.profession_id)
  );
}

function InstallForm({ item }: { item: ItemDetail }) {
  const i18n = useText();
  const { t } = i18n;
  const instances = useInstances();
  const installs = useInstalls();
  const refresh = useRefreshInstalls();
  const possible = (instances.data ?? []).filter((one) => fits(item, one));
  const [chosen, setChosen] = useState('');
  const [asking, setAsking] = useState(false);
  const target = possible.find((one) => one.id === chosen) ?? possible[0];
  const install = useMutation({
    mutationFn: (instance: string) =>
      unwrap(
        api.POST('/marketplace/items/{id}/install', {
          params: { path: { id: item.id } },
          body: { instance_id: instance },
        }),
      ),
    onSettled: refresh,
  });
  const existing = installs.data?.find((one) => one.item_id === item.id && one.instance_id === target?.id);

  if (instances.data === undefined) return <Skeleton lines={2} />;
  if (target === undefined)
    return (
      <Notice tone="info">
        {instances.data.length === 0 ? (
          <>
            {t('item.noInstance')}{' '}
            <Link href="/" className="font-medium underline">
              {t('item.toClaim')}
            </Link>
          </>
        ) : (
          t('item.onlyFor', { professions: item.professions.map((one) => one.name).join(', ') })
        )}
      </Notice>
    );
  const current = existing?.state === 'installed' && !existing.update_available;
  return (
    <section aria-label={t('item.install')} className="space-y-3 rounded-xl border border-line p-4">
      {possible.length > 1 && (
        <SelectField
          label={t('item.target')}
          value={target.id}
          choices={possible.map((one) => ({ value: one.id, label: one.name }))}
          onChange={(event) => setChosen(event.target.value)}
        />
      )}
      <div className="flex flex-wrap items-center gap-3">
        <Button
          look="primary"
          busy={install.isPending}
          disabled={current || existing?.state === 'installing' || existing?.state === 'pending'}
          onClick={() => (item.finding_count > 0 ? setAsking(true) : install.mutate(target.id))}
        >
          {existing?.update_available ? t('item.update') : t('item.installOn', { name: target.name })}
        </Button>
        {existing && <InstallBadge state={existing.state} />}
      </div>
      {asking && (
        <Confirm
          title={t('item.confirm', { name: item.name, instance: target.name })}
          confirm={t('item.anyway')}
          run={() => install.mutateAsync(target.id)}
          onClose={() => setAsking(false)}
        >
          <p>{t('item.confirmText')}</p>
          <FindingList files={item.files} />
        </Confirm>
      )}
      {install.isError && !asking && <Notice tone="error">{errorText(install.error, i18n)}</Notice>}
      {existing?.state === 'failed' && <Notice tone="error">{existing.error}</Notice>}
      {(install.data ?? (existing && existing.state !== 'installed')) && (
        <TaskProgress id={install.data?.task_id ?? existing?.task_id ?? ''} onDone={refresh} />
      )}
    </section>
  );
}
