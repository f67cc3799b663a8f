// The administrator's profile: identity, appearance and language, password, second factor.
import { PasswordForm } from '@tidepool/shared/account/password-form';
import { SecondFactorCard } from '@tidepool/shared/account/second-factor/panel';
import { Preferences } from '@tidepool/shared/account/preferences';
import { Page } from '@tidepool/shared/shell/page';
import { Card, Facts, NotSet, Panel } from '@tidepool/shared/ui/panel';
import { KeyRound, Palette, UserRound } from 'lucide-react';
import { useMe, useRoleName } from '../me';
import { useText } from '../messages';
import { oneOf, ROLES } from '../records';

export default function Profile() {
  const { t } = useText();
  const me = useMe();
  return (
    <Page wide title={t('nav.profile')} lead={t('profile.lead')}>
      <div className="grid max-w-5xl items-start gap-4 lg:grid-cols-2">
        <div className="grid gap-4">
          <Panel title={t('account.title')} icon={<UserRound aria-hidden="true" />} query={me}>
            {(data) => (
              <Facts
                rows={[
                  { name: t('account.name'), value: data.name || <NotSet /> },
                  { name: t('account.email'), value: data.email },
                  { name: t('account.role'), value: <RoleFact role={data.role} /> },
                ]}
              />
            )}
          </Panel>
          <Card title={t('preferences.title')} icon={<Palette aria-hidden="true" />}>
            <Preferences />
          </Card>
        </div>
        <div className="grid gap-4">
          <Panel title={t('password.title')} icon={<KeyRound aria-hidden="true" />} query={me}>
            {(data) =>
              data.has_password ? <PasswordForm email={data.email} /> : <p>{t('password.none')}</p>
            }
          </Panel>
          <SecondFactorCard query={me} />
        </div>
      </div>
    </Page>
  );
}

function RoleFact({ role }: { role: string }) {
  const { t } = useText();
  const roleName = useRoleName();
  const known = oneOf(role, ROLES);
  return (
    <>
      {roleName(role)}
      {known && <span className="block text-sm text-muted">{t(`role.${known}.text`)}</span>}
    </>
  );
}
