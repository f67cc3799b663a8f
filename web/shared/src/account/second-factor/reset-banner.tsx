// Says above every page that somebody else set the password, until the person says that they know.
import { useI18n } from '../../i18n/i18n';
import { RelativeTime } from '../../i18n/time';
import { errorText } from '../../api/error-text';
import { Button } from '../../ui/button';
import { Notice } from '../../ui/notice';
import { useTexts } from './texts';
import { useRequest } from './use-api';

export interface PasswordReset {
  by: string;
  at: string;
}

/** What the audit log calls the command line. */
const SYSTEM = 'System';

export default function ResetBanner({ reset, onSeen }: { reset: PasswordReset; onSeen: () => void }) {
  const i18n = useI18n();
  const t = useTexts();
  const request = useRequest((api) => api.acknowledgeReset(), { onSuccess: onSeen });
  return (
    <section aria-label={t('reset.label')} className="border-b border-line px-4 py-2 sm:px-6">
      <Notice tone="warning">
        <div className="flex flex-wrap items-center gap-x-4 gap-y-2">
          <p className="min-w-0 flex-1 basis-64">
            {reset.by === SYSTEM ? t('reset.bySystem') : t('reset.by', { by: reset.by })}{' '}
            <RelativeTime at={reset.at} />. {t('reset.advice')}
          </p>
          <Button size="small" busy={request.isPending} onClick={() => request.mutate(undefined)}>
            {t('reset.seen')}
          </Button>
        </div>
        {request.isError && <p>{errorText(request.error, i18n)}</p>}
      </Notice>
    </section>
  );
}
