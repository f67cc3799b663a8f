// For somebody whose claimed instance could not be set up: gives it back and claims another one, in one request.
import { ApiError, unwrap } from '@tidepool/shared/api/envelope';
import { errorText } from '@tidepool/shared/api/error-text';
import { Button } from '@tidepool/shared/ui/button';
import { Notice } from '@tidepool/shared/ui/notice';
import { api } from '../api';
import type { Instance } from '../instances-query';
import { useText } from '../messages';
import { useClaim } from './use-claim';

export function GetAnother({ instance }: { instance: Instance }) {
  const i18n = useText();
  const { id } = instance;
  const replace = useClaim(
    () => unwrap(api.POST('/me/instances/{id}/replace', { params: { path: { id } } })),
    id,
  );
  const { error } = replace;
  return (
    <>
      {error !== null && (
        <Notice tone="error">
          {error instanceof ApiError && error.code === '4092'
            ? i18n.t('setup.noOther')
            : errorText(error, i18n)}
        </Notice>
      )}
      <Button
        look="primary"
        busy={replace.isPending}
        onClick={() => !replace.isPending && replace.mutate(undefined)}
      >
        {i18n.t('setup.another')}
      </Button>
    </>
  );
}
