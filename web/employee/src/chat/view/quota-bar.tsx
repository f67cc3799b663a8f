// The day's tokens above the chat: what is left, and when they come back.
import { exact, hour, relative, useNow } from '@tidepool/shared/i18n/time';
import { Meter } from '@tidepool/shared/ui/meter';
import { useText } from '../../messages';
import { compact } from '../../money';
import { useProfile } from '../../profile-query';

export function QuotaBar() {
  const { t, number, locale } = useText();
  const now = useNow();
  const profile = useProfile().data;
  if (profile === undefined || profile.quota_daily === 0) return null;
  const { quota_daily: limit, used_today: used } = profile;
  const left = Math.max(0, limit - used);
  const resets = new Date(profile.quota_resets_at).getTime();
  const text = left === 0 ? t('quota.spent') : t('quota.left', { left: compact(left, locale) });
  return (
    <div
      className="flex min-w-0 items-center gap-2 text-xs text-muted sm:gap-2.5"
      title={`${t('quota.used', { used: number(used), limit: number(limit) })}. ${t('quota.resets')} ${exact(resets, locale)}`}
    >
      <div className="w-7 shrink-0 sm:w-20 lg:w-28">
        <Meter
          label={t('quota.title')}
          left
          value={left}
          max={limit}
          text={t('quota.leftOf', { left: number(left), limit: number(limit) })}
        />
      </div>
      <div className="leading-4 whitespace-nowrap tabular-nums">
        <span className={left === 0 ? 'font-medium text-danger' : ''}>{text}</span>
        <span className="max-lg:hidden">
          {' '}
          · {t('quota.resetsWhen', { when: relative(resets, locale, now) })}
        </span>
        {/* Where there is no room beside it: the hour, below. */}
        <span className="block lg:hidden">{t('quota.resetsAt', { time: hour(resets, locale) })}</span>
      </div>
    </div>
  );
}
