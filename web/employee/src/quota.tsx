// How much of the daily tokens is used, what is left and when they come back.
import { exact, RelativeTime } from '@tidepool/shared/i18n/time';
import { Meter } from '@tidepool/shared/ui/meter';
import { useText } from './messages';
import type { Profile } from './profile-query';

export function Quota({ profile }: { profile: Profile }) {
  const { t, number, locale } = useText();
  const { quota_daily: limit, used_today: used } = profile;
  // The contract: 0 means that there is no limit.
  if (limit === 0) {
    return (
      <>
        <p className="text-xl font-semibold">{t('quota.unlimited')}</p>
        <p className="mt-1 text-sm text-muted">{t('quota.usedToday', { used: number(used) })}</p>
      </>
    );
  }
  const left = Math.max(0, limit - used);
  const usedText = t('quota.used', { used: number(used), limit: number(limit) });
  return (
    <>
      <p className={`text-xl font-semibold ${left === 0 ? 'text-danger' : ''}`}>
        {left === 0 ? t('quota.spent') : t('quota.left', { left: number(left) })}
      </p>
      <div className="mt-3 mb-2">
        <Meter
          label={t('quota.title')}
          left
          value={left}
          max={limit}
          text={t('quota.leftOf', { left: number(left), limit: number(limit) })}
        />
      </div>
      <div className="flex flex-wrap justify-between gap-x-6 gap-y-1 text-sm text-muted">
        <span>{usedText}</span>
        <span>
          {t('quota.resets')} <RelativeTime at={profile.quota_resets_at} />
          <span className="sr-only"> ({exact(new Date(profile.quota_resets_at).getTime(), locale)})</span>
        </span>
      </div>
    </>
  );
}
