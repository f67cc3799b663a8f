// The employee's profile: identity, quota, appearance and language, password, second factor.
import { PasswordForm } from '@tidepool/shared/account/password-form';
import { SecondFactorCard } from '@tidepool/shared/account/second-factor/panel';
import { Preferences } from '@tidepool/shared/account/preferences';
import { RelativeTime } from '@tidepool/shared/i18n/time';
import { Page } from '@tidepool/shared/shell/page';
import { Card, Facts, NotSet, Panel } from '@tidepool/shared/ui/panel';
import { Gauge, KeyRound, Palette, UserRound } from 'lucide-react';
import { useText } from '../messages';
import { useProfile } from '../profile-query';
import { Quota } from '../quota';

export default function Profile() {
  const { t } = useText();
  const profile = useProfile();
  return (
    <Page title={t('nav.profile')} lead={t('profile.lead')}>
      <div className="grid items-start gap-5 lg:grid-cols-2">
        <div className="grid gap-5">
          <Panel
            title={t('account.title')}
            icon={<UserRound aria-hidden="true" />}
            query={profile}
            skeletonLines={4}
          >
            {(data) => (
              <Facts
                rows={[
                  { name: t('account.name'), value: data.name || <NotSet /> },
                  { name: t('account.email'), value: data.email },
                  { name: t('profile.department'), value: data.department || <NotSet /> },
                  { name: t('profile.since'), value: <RelativeTime at={data.created_at} /> },
                ]}
              />
            )}
          </Panel>
          <Panel title={t('quota.title')} icon={<Gauge aria-hidden="true" />} query={profile}>
            {(data) => <Quota profile={data} />}
          </Panel>
        </div>
        <div className="grid gap-5">
          <Card title={t('preferences.title')} icon={<Palette aria-hidden="true" />}>
            <Preferences />
          </Card>
          <Panel title={t('password.title')} icon={<KeyRound aria-hidden="true" />} query={profile}>
            {(data) =>
              data.has_password ? <PasswordForm email={data.email} /> : <p>{t('password.none')}</p>
            }
          </Panel>
          <SecondFactorCard query={profile} />
        </div>
      </div>
    </Page>
  );
}
