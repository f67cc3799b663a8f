// The console's home page: the signed-in administrator and the way to the API reference.
import { Page } from '@tidepool/shared/shell/page';
import { buttonClass } from '@tidepool/shared/ui/button';
import { Card, Facts, NotSet, Panel } from '@tidepool/shared/ui/panel';
import { BookOpen, ExternalLink, UserRound } from 'lucide-react';
import { Link } from 'wouter';
import { useMe, useRoleName } from '../me';
import { useText } from '../messages';

export default function Home() {
  const { t } = useText();
  const me = useMe();
  const roleName = useRoleName();
  return (
    <Page
      title={t('nav.home')}
      heading={t('home.title')}
      lead={me.data && t('home.lead', { role: roleName(me.data.role) })}
    >
      <div className="grid gap-5 lg:grid-cols-2">
        <Panel
          title={t('account.title')}
          icon={<UserRound aria-hidden="true" />}
          query={me}
          action={
            <Link href="/profile" className="rounded text-sm font-medium text-accent hover:underline">
              {t('home.toProfile')}
            </Link>
          }
        >
          {(data) => (
            <Facts
              rows={[
                { name: t('account.name'), value: data.name || <NotSet /> },
                { name: t('account.email'), value: data.email },
                { name: t('account.role'), value: roleName(data.role) },
              ]}
            />
          )}
        </Panel>
        <Card title={t('home.docs')} icon={<BookOpen aria-hidden="true" />}>
          <p className="mb-4 text-muted">{t('home.docsText')}</p>
          <a href="api/v1/docs" target="_blank" rel="noreferrer" className={buttonClass('secondary')}>
            {t('home.openDocs')}
            <ExternalLink className="size-4" aria-hidden="true" />
            <span className="sr-only">({t('app.newTab')})</span>
          </a>
        </Card>
      </div>
    </Page>
  );
}
