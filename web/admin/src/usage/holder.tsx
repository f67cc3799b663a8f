// Whose use it was: somebody, somebody who has left, or nobody.
import { Badge } from '@tidepool/shared/ui/badge';
import { exact } from '@tidepool/shared/i18n/time';
import { useText } from '../messages';
import { Email } from '../parts/email';

/** An e-mail address, marked when that person has left. */
export function UserName({ email, former }: { email: string; former?: boolean | null }) {
  const { t } = useText();
  return (
    <>
      <Email address={email} />
      {former && (
        <>
          {' '}
          <Badge>{t('usage.former')}</Badge>
        </>
      )}
    </>
  );
}

/** Says that older requests count to the departments of a later time. */
export function DepartmentsSince({ at }: { at: string | null | undefined }) {
  const { t, locale } = useText();
  if (!at) return null;
  return (
    <p className="text-sm text-muted">
      {t('usage.departmentsSince', { time: exact(Date.parse(at), locale) })}
    </p>
  );
}
