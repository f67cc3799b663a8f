// Why a prompt or a reply failed, in words. A used-up quota names the limit and when it comes back.
import { ApiError } from '@tidepool/shared/api/envelope';
import { errorText } from '@tidepool/shared/api/error-text';
import { relative, useNow } from '@tidepool/shared/i18n/time';
import { useText } from '../messages';
import { useProfile } from '../profile-query';
import { TOO_LONG } from './engine/socket-link';
import { NO_FILES, type Failure } from './engine/types';

export function useFailureText(failure: Failure | undefined): string {
  const i18n = useText();
  const { t, locale, number } = i18n;
  const profile = useProfile().data;
  const now = useNow();
  if (failure === undefined) return t('chat.notSent');
  switch (failure.code) {
    case '4291':
      if (profile && profile.quota_daily > 0)
        return t('chat.quotaUsed', {
          limit: number(profile.quota_daily),
          when: relative(new Date(profile.quota_resets_at).getTime(), locale, now),
        });
      return failure.msg;
    case TOO_LONG:
      return t('chat.tooLong');
    case 'cut':
      return t('chat.cut');
    case NO_FILES:
      return t('files.notHere');
    case 'unsure':
      return t('chat.unsure');
    case 'interrupted':
      return t('chat.interrupted');
    case 'assistant':
      return failure.msg || t('chat.gatewayError');
    case '5020':
      return t('chat.gatewayError');
    default:
      return errorText(new ApiError({ ...failure, status: failure.code === 'network' ? 0 : 500 }), i18n);
  }
}
