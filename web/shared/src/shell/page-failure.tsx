// What stands where a page should be when its code cannot be fetched or breaks. After an update the old files are gone,
// so loading the whole app again is the honest way out.
import { useI18n } from '../i18n/i18n';
import { Button } from '../ui/button';

export function PageFailure() {
  const { t } = useI18n();
  return (
    <div role="alert" className="mx-auto max-w-lg px-4 py-16 text-center">
      <p className="text-lg font-semibold">{t('state.broken')}</p>
      <p className="mt-1 mb-5 text-muted">{t('state.brokenHint')}</p>
      <Button look="primary" onClick={() => window.location.reload()}>
        {t('app.reload')}
      </Button>
    </div>
  );
}
