// The chat bots through which an instance can be reached from elsewhere: bind one by its token, say who may write to it, see how it is, take it off.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { ApiError, unwrap } from '@tidepool/shared/api/envelope';
import { errorText } from '@tidepool/shared/api/error-text';
import { RelativeTime } from '@tidepool/shared/i18n/time';
import { BotSenders, type Sender, type SenderActions } from '@tidepool/shared/ui/bot-senders';
import { Button } from '@tidepool/shared/ui/button';
import { Confirm } from '@tidepool/shared/ui/confirm';
import { PasswordField } from '@tidepool/shared/ui/field';
import { fieldText } from '@tidepool/shared/ui/form';
import { Notice } from '@tidepool/shared/ui/notice';
import { Panel } from '@tidepool/shared/ui/panel';
import { MessagesSquare } from 'lucide-react';
import { useState, type SyntheticEvent } from 'react';
import { api } from '../api';
import { useText } from '../messages';
import { BotState } from './bot-state';

export function Bots({ instance }: { instance: string }) {
  const { t } = useText();
  const queries = useQueryClient();
  const [removing, setRemoving] = useState<{ id: string; name: string } | null>(null);
  const path = { id: instance };
  const bindings = useQuery({
    queryKey: ['bots', instance],
    queryFn: async () =>
      (await unwrap(api.GET('/me/instances/{id}/chat-bindings', { params: { path } }))).list,
  });
  const refresh = () => {
    void queries.invalidateQueries({ queryKey: ['bots', instance] });
    void queries.invalidateQueries({ queryKey: ['bot-status', instance] });
  };
  return (
    <Panel title={t('bots.title')} icon={<MessagesSquare aria-hidden="true" />} query={bindings}>
      {(list) => (
        <div className="space-y-4">
          {list.length === 0 ? (
            <>
              <p className="text-sm text-muted">{t('bots.none')}</p>
              <BindForm instance={instance} onDone={refresh} />
            </>
          ) : (
            <>
              <ul className="divide-y divide-line">
                {list.map((bot) => (
                  <li key={bot.id} className="flex flex-wrap items-center gap-3 py-2.5 first:pt-0 last:pb-0">
                    <div className="min-w-0 flex-1 basis-40">
                      <p className="text-sm font-medium">
                        {bot.bot_username ? `@${bot.bot_username}` : t('bots.unnamed')}
                      </p>
                      <p className="text-xs text-muted">
                        {bot.platform} · {t('bots.token', { token: bot.bot_token })} ·{' '}
                        <RelativeTime at={bot.created_at} />
                      </p>
                    </div>
                    <Button
                      size="small"
                      look="quiet"
                      aria-label={t('bots.removeNamed', { name: bot.bot_username || bot.platform })}
                      onClick={() => setRemoving({ id: bot.id, name: bot.bot_username || bot.platform })}
                    >
                      {t('installs.remove')}
                    </Button>
                  </li>
                ))}
              </ul>
              <BotState instance={instance} />
              {list.map((bot) => (
                <Senders key={bot.id} instance={instance} bot={bot} onDone={refresh} />
              ))}
            </>
          )}
          {removing && (
            <Confirm
              title={t('bots.removeNamed', { name: removing.name })}
              confirm={t('installs.remove')}
              run={() =>
                unwrap(
                  api.DELETE('/me/instances/{id}/chat-bindings/{bid}', {
                    params: { path: { id: instance, bid: removing.id } },
                  }),
                )
              }
              onDone={refresh}
              onClose={() => setRemoving(null)}
            >
              {t('bots.removeText')}
            </Confirm>
          )}
        </div>
      )}
    </Panel>
  );
}

interface SendersProps {
  instance: string;
  bot: { id: string; senders: Sender[] };
  onDone: () => void;
}

function Senders({ instance, bot, onDone }: SendersProps) {
  const path = { id: instance, bid: bot.id };
  const actions: SenderActions = {
    requests: async () =>
      (await unwrap(api.GET('/me/instances/{id}/chat-bindings/{bid}/pairing-requests', { params: { path } })))
        .list,
    allow: (who) =>
      unwrap(api.POST('/me/instances/{id}/chat-bindings/{bid}/senders', { params: { path }, body: who })),
    refuse: (sender_id) =>
      unwrap(
        api.DELETE('/me/instances/{id}/chat-bindings/{bid}/pairing-requests/{sender_id}', {
          params: { path: { ...path, sender_id } },
        }),
      ),
    remove: (sender_id) =>
      unwrap(
        api.DELETE('/me/instances/{id}/chat-bindings/{bid}/senders/{sender_id}', {
          params: { path: { ...path, sender_id } },
        }),
      ),
  };
  return (
    <BotSenders
      queryKey={['bot-pairing', instance, bot.id]}
      senders={bot.senders}
      actions={actions}
      onDone={onDone}
    />
  );
}

function BindForm({ instance, onDone }: { instance: string; onDone: () => void }) {
  const i18n = useText();
  const { t } = i18n;
  const [missing, setMissing] = useState(false);
  const bind = useMutation({
    mutationFn: (token: string) =>
      unwrap(
        api.POST('/me/instances/{id}/configure-bot', {
          params: { path: { id: instance } },
          body: { bot_token: token },
        }),
      ),
    onSuccess: onDone,
  });

  function submit(event: SyntheticEvent<HTMLFormElement>) {
    event.preventDefault();
    const token = fieldText(new FormData(event.currentTarget), 'bot_token').trim();
    setMissing(token === '');
    if (token !== '' && !bind.isPending) bind.mutate(token);
  }

  return (
    <form noValidate onSubmit={submit} className="space-y-3">
      {bind.isError && (
        <Notice tone="error">
          {bind.error instanceof ApiError && bind.error.status === 409
            ? t('bots.inUse')
            : errorText(bind.error, i18n)}
        </Notice>
      )}
      <PasswordField
        label={t('bots.tokenLabel')}
        name="bot_token"
        autoComplete="off"
        hint={t('bots.tokenHint')}
        error={missing ? t('bots.tokenMissing') : null}
      />
      <Button type="submit" look="primary" busy={bind.isPending}>
        {t('bots.bind')}
      </Button>
    </form>
  );
}
