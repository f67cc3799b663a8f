// Administrators, what the process depends on, and the way to the API reference.
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { useOptions } from '@tidepool/shared/account/use-options';
import { RelativeTime } from '@tidepool/shared/i18n/time';
import { Page } from '@tidepool/shared/shell/page';
import { Badge, Status } from '@tidepool/shared/ui/badge';
import { Button, buttonClass } from '@tidepool/shared/ui/button';
import { Confirm } from '@tidepool/shared/ui/confirm';
import { Menu } from '@tidepool/shared/ui/menu';
import { Card, Facts, Panel } from '@tidepool/shared/ui/panel';
import { BookOpen, ExternalLink, Plus } from 'lucide-react';
import { useState } from 'react';
import { api } from '../api';
import { useMay, useMe, useRights } from '../me';
import { useText } from '../messages';
import { useReady } from '../overview/queries';
import { Allowed } from '../parts/allowed';
import { RoleBadge, RoleList } from '../parts/role';
import type { Admin } from '../records';
import { AdminForm } from '../settings/admin-form';

export default function Settings() {
  const { t } = useText();
  const { may } = useRights();
  return (
    <Page wide title={t('settings.title')}>
      <div className="grid items-start gap-4 xl:grid-cols-3">
        <div className="grid min-w-0 gap-4 xl:col-span-2">
          {may('people.read') ? (
            <Admins />
          ) : (
            <Card title={t('admins.title')}>
              <Allowed to="people.read">{null}</Allowed>
            </Card>
          )}
          <Card title={t('admins.roles')}>
            <RoleList />
          </Card>
        </div>
        <div className="grid min-w-0 gap-4">
          <Health />
          <Card title={t('home.docs')} icon={<BookOpen aria-hidden="true" />}>
            <p className="mb-4 text-sm text-muted">{t('home.docsText')}</p>
            <a href="api/v1/docs" target="_blank" rel="noreferrer" className={buttonClass('secondary')}>
              {t('home.openDocs')}
              <ExternalLink className="size-4" aria-hidden="true" />
              <span className="sr-only">({t('app.newTab')})</span>
            </a>
          </Card>
        </div>
      </div>
    </Page>
  );
}

type Asking = { admin: Admin; what: 'edit' | 'status' | 'delete' } | null;

function Admins() {
  const { t } = useText();
  const client = useQueryClient();
  const me = useMe();
  const mayManage = useMay('admins.manage');
  const [adding, setAdding] = useState(false);
  const [asking, setAsking] = useState<Asking>(null);
  const admins = useQuery({ queryKey: ['admins'], queryFn: () => unwrap(api.GET('/admin-users')) });
  const changed = () => void client.invalidateQueries({ queryKey: ['admins'] });
  const path = (email: string) => ({ params: { path: { email } } });
  return (
    <Panel
      title={t('admins.title')}
      query={admins}
      action={
        mayManage && (
          <Button size="small" onClick={() => setAdding(true)}>
            <Plus className="size-4" aria-hidden="true" />
            {t('admins.add')}
          </Button>
        )
      }
    >
      {({ list }) => (
        <>
          {!mayManage && me.data && <p className="mb-3 text-sm text-muted">{t('admins.onlySuper')}</p>}
          <ul className="divide-y divide-line">
            {list.map((admin) => (
              <li key={admin.id} className="flex items-center gap-x-4 py-2.5 text-sm">
                <span className="flex min-w-0 flex-1 flex-wrap items-center gap-x-4 gap-y-1">
                  <span className="min-w-0 flex-1 basis-52">
                    <span className="font-medium">{admin.name || admin.email}</span>
                    {admin.email === me.data?.email && (
                      <span className="ms-2 text-muted">{t('admins.you')}</span>
                    )}
                    <span className="block text-muted">{admin.email}</span>
                  </span>
                  <RoleBadge role={admin.role} />
                  {admin.status === 'revoked' && <Badge tone="bad">{t('users.revoked')}</Badge>}
                  <span className="text-muted sm:w-44 sm:text-end">
                    {admin.last_login_at ? <LastLogin at={admin.last_login_at} /> : t('admins.neverIn')}
                  </span>
                </span>
                {mayManage && (
                  <Menu
                    label={t('professions.actionsOf', { name: admin.email })}
                    entries={[
                      { label: t('instances.edit'), run: () => setAsking({ admin, what: 'edit' }) },
                      {
                        label: t(admin.status === 'active' ? 'users.revoke' : 'users.restore'),
                        danger: admin.status === 'active',
                        run: () => setAsking({ admin, what: 'status' }),
                      },
                      {
                        label: t('admins.delete'),
                        danger: true,
                        run: () => setAsking({ admin, what: 'delete' }),
                      },
                    ]}
                  />
                )}
              </li>
            ))}
          </ul>
          {adding && <AdminForm onClose={() => setAdding(false)} onDone={changed} />}
          {asking?.what === 'edit' && (
            <AdminForm admin={asking.admin} onClose={() => setAsking(null)} onDone={changed} />
          )}
          {asking?.what === 'status' && (
            <Confirm
              title={t(asking.admin.status === 'active' ? 'users.revokeTitle' : 'users.restoreTitle', {
                name: asking.admin.email,
              })}
              name={asking.admin.status === 'active' ? asking.admin.email : undefined}
              danger={asking.admin.status === 'active'}
              confirm={t(asking.admin.status === 'active' ? 'users.revoke' : 'users.restore')}
              run={() =>
                unwrap(
                  api.PATCH('/admin-users/{email}', {
                    ...path(asking.admin.email),
                    body: { status: asking.admin.status === 'active' ? 'revoked' : 'active' },
                  }),
                )
              }
              onDone={changed}
              onClose={() => setAsking(null)}
            >
              <p>{t('admins.statusText')}</p>
            </Confirm>
          )}
          {asking?.what === 'delete' && (
            <Confirm
              title={t('admins.deleteTitle', { name: asking.admin.email })}
              name={asking.admin.email}
              confirm={t('admins.delete')}
              run={() => unwrap(api.DELETE('/admin-users/{email}', path(asking.admin.email)))}
              onDone={changed}
              onClose={() => setAsking(null)}
            >
              <p>{t('admins.deleteText')}</p>
            </Confirm>
          )}
        </>
      )}
    </Panel>
  );
}

function LastLogin({ at }: { at: string }) {
  const { t } = useText();
  const [before, after] = t('admins.lastIn').split('{time}');
  return (
    <>
      {before}
      <RelativeTime at={at} />
      {after}
    </>
  );
}

function Health() {
  const { t } = useText();
  const ready = useReady();
  const options = useOptions();
  const state = (status: string) => (
    <Status tone={status === 'ok' ? 'good' : 'bad'}>{status === 'ok' ? t('settings.ok') : status}</Status>
  );
  return (
    <Panel title={t('settings.process')} query={ready}>
      {(data) => (
        <Facts
          rows={[
            { name: t('settings.version'), value: options.data?.version ?? t('capacity.unknown') },
            { name: t('settings.database'), value: state(data.database) },
            { name: t('settings.gateway'), value: state(data.gateway.status) },
            { name: t('settings.log'), value: state(data.log.status) },
            {
              name: t('settings.sso'),
              value: options.data
                ? t(options.data.sso ? 'settings.on' : 'settings.off')
                : t('capacity.unknown'),
            },
          ]}
        />
      )}
    </Panel>
  );
}
