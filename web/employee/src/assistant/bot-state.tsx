// How a bound bot is, as the platform and the bot platform see it.
import { useQuery } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { Notice } from '@tidepool/shared/ui/notice';
import { Facts } from '@tidepool/shared/ui/panel';
import { ErrorState, Skeleton } from '@tidepool/shared/ui/states';
import { api } from '../api';
import { useText } from '../messages';

export function BotState({ instance }: { instance: string }) {
  const { t, number } = useText();
  const status = useQuery({
    queryKey: ['bot-status', instance],
    retry: false,
    queryFn: () => unwrap(api.GET('/me/instances/{id}/bot-status', { params: { path: { id: instance } } })),
  });
  if (status.data === undefined)
    return status.isError ? (
      <ErrorState error={status.error} onRetry={() => void status.refetch()} />
    ) : (
      <Skeleton lines={2} />
    );
  const { mode, pending_update_count: waiting, last_error: error } = status.data;
  return (
    <>
      <Facts
        rows={[
          { name: t('bots.mode'), value: mode },
          {
            name: t('bots.waiting'),
            value:
              waiting == null ? <span className="text-muted">{t('bots.unknown')}</span> : number(waiting),
          },
        ]}
      />
      {error && <Notice tone="warning">{t('bots.lastError', { error })}</Notice>}
    </>
  );
}
