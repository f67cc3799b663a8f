// The model providers of the embedded gateway: how each is doing, its keys and what cools down; made, changed and tested here.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { errorText } from '@tidepool/shared/api/error-text';
import { RelativeTime } from '@tidepool/shared/i18n/time';
import { Badge, Status, type Tone } from '@tidepool/shared/ui/badge';
import { Button } from '@tidepool/shared/ui/button';
import { Confirm } from '@tidepool/shared/ui/confirm';
import { PasswordField } from '@tidepool/shared/ui/field';
import { fieldText } from '@tidepool/shared/ui/form';
import { Menu } from '@tidepool/shared/ui/menu';
import { Panel } from '@tidepool/shared/ui/panel';
import { EmptyState } from '@tidepool/shared/ui/states';
import { toast } from '@tidepool/shared/ui/toast';
import { ArrowUpToLine, KeyRound, Pencil, Play, Plus, Trash2 } from 'lucide-react';
import { useState } from 'react';
import { api } from '../api';
import { useMay } from '../me';
import { FormDialog } from '../parts/form-dialog';
import type { Provider, ProviderKey } from '../records';
import { ProviderForm } from './provider-form';
import { ProviderTest } from './provider-test';
import { useProviderText } from './provider-texts';

const TONES: Record<Provider['state'], Tone> = {
  off: 'none',
  no_key: 'warn',
  unknown: 'none',
  ok: 'good',
  degraded: 'warn',
  failing: 'bad',
};

/** What is open above the list. */
type Open =
  | { what: 'form'; provider: Provider | null }
  | { what: 'test' | 'key' | 'delete'; provider: Provider }
  | { what: 'delete-key'; provider: Provider; key: ProviderKey };

export function ProviderList() {
  const { t } = useProviderText();
  const client = useQueryClient();
  const may = useMay('providers.manage');
  const [open, setOpen] = useState<Open | null>(null);
  const query = useQuery({
    queryKey: ['providers'],
    queryFn: () => unwrap(api.GET('/providers')),
    refetchInterval: 15_000,
  });
  const changed = () => void client.invalidateQueries({ queryKey: ['providers'] });
  const close = () => setOpen(null);
  return (
    <Panel
      title={t('keys.tab.providers')}
      query={query}
      action={
        may && (
          <Button size="small" look="primary" onClick={() => setOpen({ what: 'form', provider: null })}>
            <Plus className="size-4" aria-hidden="true" />
            {t('providers.add')}
          </Button>
        )
      }
    >
      {({ list }) => (
        <>
          {list.length === 0 ? (
            <EmptyState title={t('providers.none')}>{t('providers.noneText')}</EmptyState>
          ) : (
            <ul className="divide-y divide-line">
              {list.map((provider) => (
                <Item key={provider.id} provider={provider} may={may} changed={changed} open={setOpen} />
              ))}
            </ul>
          )}
          {open?.what === 'form' && (
            <ProviderForm provider={open.provider} onClose={close} onDone={changed} />
          )}
          {open?.what === 'test' && (
            <ProviderTest provider={open.provider} onClose={close} onDone={changed} />
          )}
          {open?.what === 'key' && <AddKey provider={open.provider} onClose={close} onDone={changed} />}
          {open?.what === 'delete' && (
            <Confirm
              title={t('providers.deleteTitle', { name: open.provider.name })}
              name={open.provider.name}
              confirm={t('providers.delete')}
              run={() =>
                unwrap(api.DELETE('/providers/{id}', { params: { path: { id: open.provider.id } } }))
              }
              onDone={changed}
              onClose={close}
            >
              <p>{t('providers.deleteText')}</p>
            </Confirm>
          )}
          {open?.what === 'delete-key' && (
            <Confirm
              title={t('providers.keyDeleteTitle', { hint: open.key.hint, name: open.provider.name })}
              confirm={t('providers.keyDelete')}
              run={() =>
                unwrap(
                  api.DELETE('/providers/{id}/keys/{kid}', {
                    params: { path: { id: open.provider.id, kid: open.key.id } },
                  }),
                )
              }
              onDone={changed}
              onClose={close}
            >
              <p>{t('providers.keyDeleteText')}</p>
            </Confirm>
          )}
        </>
      )}
    </Panel>
  );
}

interface ItemProps {
  provider: Provider;
  may: boolean;
  changed: () => void;
  open: (open: Open) => void;
}

function Item({ provider, may, changed, open }: ItemProps) {
  const i18n = useProviderText();
  const { t } = i18n;
  const { id, name, source } = provider;
  const isRecord = source === 'record';
  const toggle = useMutation({
    mutationFn: () =>
      unwrap(
        api.PATCH('/providers/{id}', { params: { path: { id } }, body: { enabled: !provider.enabled } }),
      ),
    onSuccess: changed,
    onError: (error) => toast('error', errorText(error, i18n)),
  });
  return (
    <li className="space-y-2 py-3 text-sm">
      <div className="flex flex-wrap items-center gap-x-4 gap-y-1.5">
        <span className="min-w-0 flex-1 basis-48">
          <span className={`font-medium ${provider.enabled ? '' : 'text-muted'}`}>{name}</span>
          <span className="block break-all text-muted">{provider.base_url}</span>
        </span>
        <span className="flex grow items-center gap-4 sm:grow-0">
          <Status tone={TONES[provider.state]}>{t(`providers.state.${provider.state}`)}</Status>
          {isRecord ? (
            <label
              className="flex min-h-8 items-center gap-2 sm:w-14"
              title={may ? undefined : t('forbidden.action')}
            >
              <input
                type="checkbox"
                role="switch"
                className="size-4 accent-accent"
                checked={provider.enabled}
                disabled={!may || toggle.isPending}
                aria-label={t('providers.enable', { name })}
                onChange={() => toggle.mutate()}
              />
              {t(provider.enabled ? 'providers.on' : 'providers.off')}
            </label>
          ) : (
            <Badge>{t(source === 'file' ? 'providers.source.file' : 'providers.source.environment')}</Badge>
          )}
          {may && (
            <span className="ms-auto">
              <Menu
                label={t('providers.actionsOf', { name })}
                entries={[
                  { label: t('providers.test'), icon: Play, run: () => open({ what: 'test', provider }) },
                  ...(isRecord
                    ? [
                        {
                          label: t('providers.edit'),
                          icon: Pencil,
                          run: () => open({ what: 'form', provider }),
                        },
                        {
                          label: t('providers.keyAdd'),
                          icon: KeyRound,
                          run: () => open({ what: 'key', provider }),
                        },
                        {
                          label: t('providers.delete'),
                          icon: Trash2,
                          danger: true,
                          run: () => open({ what: 'delete', provider }),
                        },
                      ]
                    : []),
                ]}
              />
            </span>
          )}
        </span>
      </div>
      <p className="text-muted">
        {provider.protocols.join(', ')}
        {provider.proxy && ` · ${t('providers.proxy')} ${provider.proxy}`}
        {provider.overridden && ` · ${t('providers.overridden')}`}
      </p>
      <ul className="space-y-1">
        {provider.keys.map((key) => (
          <KeyLine key={key.id} of={provider} one={key} may={may && isRecord} changed={changed} open={open} />
        ))}
        {provider.health && (
          <li>
            <Met health={provider.health} />
          </li>
        )}
      </ul>
    </li>
  );
}

function KeyLine(props: { of: Provider; one: ProviderKey } & Pick<ItemProps, 'may' | 'changed' | 'open'>) {
  const { of, one, may, changed, open } = props;
  const i18n = useProviderText();
  const { t } = i18n;
  const first = useMutation({
    mutationFn: () =>
      unwrap(api.POST('/providers/{id}/keys/{kid}/first', { params: { path: { id: of.id, kid: one.id } } })),
    onSuccess: changed,
    onError: (error) => toast('error', errorText(error, i18n)),
  });
  return (
    <li className="flex items-start gap-3">
      <span className="flex min-w-0 flex-1 flex-wrap items-center gap-x-3 gap-y-1">
        <code className="rounded bg-sunken px-1.5 py-0.5 font-mono">{one.hint}</code>
        {one.cooling.map((cooling) => (
          <span key={cooling.model ?? ''} className="flex flex-wrap items-center gap-1.5">
            <Badge tone="warn">{t(`providers.failure.${cooling.reason}`)}</Badge>
            <span className="text-muted">
              {cooling.model ? t('providers.sparedModel', { model: cooling.model }) : t('providers.spared')}{' '}
              <RelativeTime at={cooling.until} />
            </span>
          </span>
        ))}
        {one.health && <Met health={one.health} />}
      </span>
      {may && (
        <Menu
          label={t('providers.keyOf', { hint: one.hint })}
          entries={[
            ...(of.keys[0]?.id === one.id
              ? []
              : [{ label: t('providers.keyFirst'), icon: ArrowUpToLine, run: () => first.mutate() }]),
            {
              label: t('providers.keyDelete'),
              icon: Trash2,
              danger: true,
              run: () => open({ what: 'delete-key', provider: of, key: one }),
            },
          ]}
        />
      )}
    </li>
  );
}

/** What real requests met. */
function Met({ health }: { health: NonNullable<Provider['health']> }) {
  const { t, number } = useProviderText();
  const { last_success_at, last_failure_at, last_failure, recent_succeeded, recent_failed } = health;
  return (
    <span className="text-muted">
      {t('providers.counts', { ok: number(recent_succeeded), failed: number(recent_failed) })}
      {last_success_at && (
        <>
          {` · ${t('providers.lastSuccess')} `}
          <RelativeTime at={last_success_at} />
        </>
      )}
      {last_failure_at && (
        <>
          {` · ${t('providers.lastFailure')} `}
          <RelativeTime at={last_failure_at} />
          {last_failure && ` (${t(`providers.failure.${last_failure}`)})`}
        </>
      )}
    </span>
  );
}

function AddKey({
  provider,
  onClose,
  onDone,
}: {
  provider: Provider;
  onClose: () => void;
  onDone: () => void;
}) {
  const { t } = useProviderText();
  return (
    <FormDialog
      title={t('providers.keyAdd')}
      lead={provider.name}
      submit={t('dialog.save')}
      onClose={onClose}
      onDone={onDone}
      send={(data) =>
        unwrap(
          api.POST('/providers/{id}/keys', {
            params: { path: { id: provider.id } },
            body: { key: fieldText(data, 'key').trim() },
          }),
        )
      }
    >
      {(refused) => (
        <PasswordField
          label={t('providers.key')}
          name="key"
          hint={t('providers.keyHint')}
          autoComplete="off"
          error={refused('key')}
        />
      )}
    </FormDialog>
  );
}
