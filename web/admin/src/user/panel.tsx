// One employee over the list: who, what they use, which assistants they have or had.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { errorText } from '@tidepool/shared/api/error-text';
import { RelativeTime } from '@tidepool/shared/i18n/time';
import { Badge } from '@tidepool/shared/ui/badge';
import { Button } from '@tidepool/shared/ui/button';
import { Combobox, type Found } from '@tidepool/shared/ui/combobox';
import { SidePanel } from '@tidepool/shared/ui/dialog';
import { Facts, NotSet } from '@tidepool/shared/ui/panel';
import { ErrorState, Skeleton } from '@tidepool/shared/ui/states';
import { toast } from '@tidepool/shared/ui/toast';
import { Pencil } from 'lucide-react';
import { useState } from 'react';
import { Link } from 'wouter';
import { api } from '../api';
import { useFormat } from '../format';
import { useMay, useRights } from '../me';
import { useText } from '../messages';
import { AuditList } from '../parts/audit-list';
import { QueryState } from '../parts/query-state';
import { findFreeInstances, findUnassignedInstances } from '../parts/pickers';
import type { User } from '../records';
import { ChangeStatus, UserForm } from './forms';

export function UserPanel({ id, onClose }: { id: string; onClose: () => void }) {
  const { t } = useText();
  const { may } = useRights();
  const [dialog, setDialog] = useState<'edit' | 'status' | null>(null);
  const user = useQuery({
    queryKey: ['users', 'one', id],
    queryFn: () => unwrap(api.GET('/users/{id}', { params: { path: { id } } })),
  });
  return (
    <SidePanel
      open
      onClose={onClose}
      title={user.data ? user.data.name || user.data.email : id}
      lead={user.data?.email}
      actions={
        user.data &&
        may('people.manage') && (
          <>
            <Button size="small" onClick={() => setDialog('edit')}>
              <Pencil className="size-4" aria-hidden="true" />
              {t('instances.edit')}
            </Button>
            <Button
              size="small"
              look={user.data.status === 'active' ? 'danger' : 'secondary'}
              onClick={() => setDialog('status')}
            >
              {t(user.data.status === 'active' ? 'users.revoke' : 'users.restore')}
            </Button>
          </>
        )
      }
    >
      {user.data ? (
        <div className="space-y-7">
          <UserFacts user={user.data} />
          {may('people.manage') && <GiveInstance user={user.data} />}
          {may('audit.read') && <Recent email={user.data.email} />}
        </div>
      ) : user.isError ? (
        <ErrorState error={user.error} onRetry={() => void user.refetch()} />
      ) : (
        <Skeleton lines={7} />
      )}
      {dialog === 'edit' && user.data && <UserForm user={user.data} onClose={() => setDialog(null)} />}
      {dialog === 'status' && user.data && <ChangeStatus user={user.data} onClose={() => setDialog(null)} />}
    </SidePanel>
  );
}

function signIn(user: User) {
  if (!user.has_password) return 'users.bySso';
  return user.has_identity ? 'users.byBoth' : 'users.byPassword';
}

function UserFacts({ user }: { user: User }) {
  const { t, number } = useText();
  const format = useFormat();
  const usage = useQuery({
    queryKey: ['usage', 'user', user.email],
    enabled: useMay('usage.read'),
    queryFn: () => unwrap(api.GET('/usage/user/{email}', { params: { path: { email: user.email } } })),
  });
  return (
    <Facts
      rows={[
        {
          name: t('users.status'),
          value: (
            <>
              <Badge tone={user.status === 'active' ? 'good' : 'bad'}>{t(`users.${user.status}`)}</Badge>
              {user.revoked_at && (
                <span className="ms-2 text-sm text-muted">
                  <RelativeTime at={user.revoked_at} />
                </span>
              )}
            </>
          ),
        },
        { name: t('users.department'), value: user.department || <NotSet /> },
        { name: t('users.signIn'), value: t(signIn(user)) },
        {
          name: t('users.quota'),
          value:
            user.quota_daily === 0
              ? t('users.noLimit')
              : t('users.tokensCount', { count: number(user.quota_daily) }),
        },
        {
          name: t('users.usedToday'),
          value: usage.data
            ? t('users.tokensCount', { count: number(usage.data.today) })
            : usage.isError
              ? t('capacity.unknown')
              : '…',
        },
        {
          name: t('users.usedMonth'),
          value: usage.data
            ? t('users.tokensCount', { count: number(usage.data.month) })
            : usage.isError
              ? t('capacity.unknown')
              : '…',
        },
        { name: t('users.estimate'), value: `≈ ${format.money(user.est_cost_usd)}` },
        {
          name: t('users.instance'),
          value: user.instance_id ? (
            <Link
              href={`/instances?open=${encodeURIComponent(user.instance_id)}`}
              className="rounded text-accent hover:underline"
            >
              {user.instance_name}
            </Link>
          ) : (
            <span className="text-muted">{t('users.noInstance')}</span>
          ),
        },
        { name: t('users.created'), value: <RelativeTime at={user.created_at} /> },
      ]}
    />
  );
}

function GiveInstance({ user }: { user: User }) {
  const i18n = useText();
  const { t } = i18n;
  const client = useQueryClient();
  const mayGiveAny = useMay('instances.assign_unisolated');
  const [chosen, setChosen] = useState<Found | null>(null);
  const give = useMutation({
    mutationFn: (instance_id: string) =>
      unwrap(
        api.POST('/users/{id}/assign-instance', { params: { path: { id: user.id } }, body: { instance_id } }),
      ),
    onSuccess: () => {
      setChosen(null);
      for (const root of ['users', 'instances', 'tasks']) void client.invalidateQueries({ queryKey: [root] });
    },
    onError: (error) => toast('error', errorText(error, i18n)),
  });
  if (user.status !== 'active') return null;
  return (
    <div className="flex flex-wrap items-end gap-3 rounded-lg bg-sunken px-4 py-3">
      <div className="min-w-0 flex-1 basis-60">
        <Combobox
          label={t('users.give')}
          placeholder={t('instances.search')}
          chosen={chosen}
          onChoose={setChosen}
          queryKey={['instances', mayGiveAny ? 'unassigned' : 'free']}
          search={(q) => (mayGiveAny ? findUnassignedInstances(q, t) : findFreeInstances(q))}
        />
      </div>
      <Button
        look="primary"
        busy={give.isPending}
        disabled={chosen === null}
        onClick={() => chosen && give.mutate(chosen.value)}
      >
        {t('instances.assign')}
      </Button>
    </div>
  );
}

function Recent({ email }: { email: string }) {
  const { t } = useText();
  const entries = useQuery({
    queryKey: ['audit', 'about', email],
    queryFn: () => unwrap(api.GET('/audit-logs', { params: { query: { q: email, limit: 10, offset: 0 } } })),
  });
  return (
    <section>
      <h3 className="mb-2 text-sm font-semibold">{t('users.recent')}</h3>
      <QueryState query={entries}>
        {({ list }) =>
          list.length === 0 ? (
            <p className="text-sm text-muted">{t('audit.none')}</p>
          ) : (
            <AuditList entries={list} />
          )
        }
      </QueryState>
    </section>
  );
}
