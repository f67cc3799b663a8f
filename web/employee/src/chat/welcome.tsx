// The chat page of somebody who has no instance yet: who they are, their quota, and what they can claim.
import { Page } from '@tidepool/shared/shell/page';
import { VersionTag } from '@tidepool/shared/shell/version';
import { Panel } from '@tidepool/shared/ui/panel';
import { Gauge } from 'lucide-react';
import { IdleInstances, Professions } from '../claim/offers';
import { useText, type Key } from '../messages';
import { useProfile } from '../profile-query';
import { Quota } from '../quota';

function greeting(hour: number): Key {
  if (hour >= 5 && hour < 12) return 'home.morning';
  return hour >= 12 && hour < 18 ? 'home.afternoon' : 'home.evening';
}

export function Welcome() {
  const { t } = useText();
  const profile = useProfile();
  const { name, email } = profile.data ?? {};
  const heading = name ? t(greeting(new Date().getHours()), { name }) : t('home.hello');
  return (
    <div className="size-full overflow-y-auto">
      <Page
        title={t('nav.home')}
        heading={heading}
        lead={
          <>
            {t('home.lead')}
            {email && (
              <span className="mt-0.5 block text-sm">
                {t('home.signedIn')} <span className="font-medium text-ink">{email}</span>
              </span>
            )}
          </>
        }
      >
        <div className="grid items-start gap-5 lg:grid-cols-[3fr_2fr]">
          <Professions heading={t('home.professions')} />
          <div className="grid gap-5">
            <IdleInstances />
            <Panel title={t('quota.title')} icon={<Gauge aria-hidden="true" />} query={profile}>
              {(data) => <Quota profile={data} />}
            </Panel>
          </div>
        </div>
        <p className="mt-6 hidden text-end md:block">
          <VersionTag />
        </p>
      </Page>
    </div>
  );
}
