// The page for addresses that lead nowhere.
import { Link } from 'wouter';
import { useI18n } from '../i18n/i18n';
import { buttonClass } from '../ui/button';
import { Page } from './page';

export default function NotFound() {
  const { t } = useI18n();
  return (
    <Page title={t('notFound.title')} lead={t('notFound.text')}>
      <Link href="/" className={buttonClass('primary')}>
        {t('notFound.home')}
      </Link>
    </Page>
  );
}
