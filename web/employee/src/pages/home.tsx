// The employee's home page: today's tokens, the assistants that are there, and the account.
import { Page } from '@tidepool/shared/shell/page';
import { Facts, NotSet, Panel } from '@tidepool/shared/ui/panel';
import { EmptyState } from '@tidepool/shared/ui/states';
import { Bot, Gauge, UserRound } from 'lucide-react';
import { Link } from 'wouter';
import { useText, type Key } from '../messages';
import { useProfile } from '../profile-query';
import { Quota } from '../quota';

function greeting(hour: number): Key {
  if (hour >= 5 && hour < 12) return 'home.morning';
  return hour >= 12 && hour < 18 ? 'home.afternoon' : 'home.evening';
}

export default function Home() {
  const { t, number } = useText();
  const profile = useProfile();
  const name = profile.data?.name;
  const heading = name ? t(greeting(new Date().getHours()), { name }) : t('home.hello');
  return (
    <Page title={t('nav.home')} heading={heading} lead={t('home.lead')}>
      <div className="grid gap-5 md:grid-cols-2">
        <Panel
          title={t('quota.title')}
          icon={<Gauge aria-hidden="true" />}
          query={profile}
          className="md:col-span-2"
        >
          {(data) => <Quota profile={data} />}
        </Panel>
        <Panel
          title={t('home.assistants')}
          icon={<Bot aria-hidden="true" />}
          query={profile}
          empty={{
            when: (data) => data.instance_count === 0,
            show: <EmptyState title={t('home.assistantsNone')}>{t('home.assistantsNoneHint')}</EmptyState>,
          }}
        >
          {(data) => (
            <p className="text-xl font-semibold">
              {t('home.assistantsCount', { count: number(data.instance_count) })}
            </p>
          )}
        </Panel>
        <Panel
          title={t('account.title')}
          icon={<UserRound aria-hidden="true" />}
          query={profile}
          action={
            <Link href="/profile" className="rounded text-sm font-medium text-accent hover:underline">
              {t('home.toProfile')}
            </Link>
          }
        >
          {(data) => (
            <Facts
              rows={[
                { name: t('account.email'), value: data.email },
                { name: t('profile.department'), value: data.department || <NotSet /> },
              ]}
            />
          )}
        </Panel>
      </div>
    </Page>
  );
}
