// The chat bots of one instance: set one up, say who may write to it, see how it does, take it off.
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { RelativeTime } from '@tidepool/shared/i18n/time';
import { Badge } from '@tidepool/shared/ui/badge';
import { BotSenders, type SenderActions } from '@tidepool/shared/ui/bot-senders';
import { Button } from '@tidepool/shared/ui/button';
import { Confirm } from '@tidepool/shared/ui/confirm';
import { Field, PasswordField } from '@tidepool/shared/ui/field';
import { fieldText } from '@tidepool/shared/ui/form';
import { EmptyState } from '@tidepool/shared/ui/states';
import { CheckField } from '@tidepool/shared/ui/text-area';
import { toast } from '@tidepool/shared/ui/toast';
import { Plus, Trash2 } from 'lucide-react';
import { useState } from 'react';
import { api } from '../api';
import { useMay } from '../me';
import { useText } from '../messages';
import { FormDialog } from '../parts/form-dialog';
import { QueryState } from '../parts/query-state';
import type { ChatBinding, InstanceDetail } from '../records';

export function BotsTab({ instance }: { instance: InstanceDetail }) {
  const { t } = useText();
  const client = useQueryClient();
  const [adding, setAdding] = useState(false);
  const [removing, setRemoving] = useState<ChatBinding | null>(null);
  const mayManage = useMay('people.manage');
  const path = { id: instance.id };
  const bindings = useQuery({
    queryKey: ['instances', 'bots', instance.id],
    queryFn: () => unwrap(api.GET('/instances/{id}/chat-bindings', { params: { path } })),
  });
  const changed = () => {
    void client.invalidateQueries({ queryKey: ['instances', 'bots', instance.id] });
    void client.invalidateQueries({ queryKey: ['instances', 'bot-status', instance.id] });
    void client.invalidateQueries({ queryKey: ['tasks'] });
  };
  return (
    <div className="space-y-4">
      {mayManage && (
        <div className="flex justify-end">
          <Button size="small" onClick={() => setAdding(true)}>
            <Plus className="size-4" aria-hidden="true" />
            {t('bots.add')}
          </Button>
        </div>
      )}
      <QueryState query={bindings}>
        {({ list }) =>
          list.length === 0 ? (
            <EmptyState title={t('bots.none')}>{t('bots.noneText')}</EmptyState>
          ) : (
            <>
              <ul className="divide-y divide-line rounded-lg border border-line">
                {list.map((bot) => (
                  <li key={bot.id} className="flex flex-wrap items-center gap-3 px-4 py-2.5 text-sm">
                    <span className="min-w-0 flex-1">
                      <span className="font-medium">{bot.bot_username || bot.platform}</span>
                      <span className="block text-muted">
                        {bot.platform} · <code className="font-mono text-xs">{bot.bot_token}</code> ·{' '}
                        <RelativeTime at={bot.created_at} />
                      </span>
                    </span>
                    <Badge tone={bot.is_active === 1 ? 'good' : 'none'}>
                      {t(bot.is_active === 1 ? 'bots.active' : 'bots.inactive')}
                    </Badge>
                    {mayManage && (
                      <Button
                        size="small"
                        look="danger"
                        aria-label={t('bots.removeOf', { name: bot.bot_username || bot.id })}
                        onClick={() => setRemoving(bot)}
                      >
                        <Trash2 className="size-4" aria-hidden="true" />
                      </Button>
                    )}
                  </li>
                ))}
              </ul>
              <Health id={instance.id} />
              {mayManage &&
                list.map((bot) => <Senders key={bot.id} instance={instance.id} bot={bot} onDone={changed} />)}
            </>
          )
        }
      </QueryState>
      {adding && <AddBot id={instance.id} onClose={() => setAdding(false)} onDone={changed} />}
      {removing && (
        <Confirm
          title={t('bots.removeTitle')}
          confirm={t('bots.remove')}
          run={() =>
            unwrap(
              api.DELETE('/instances/{id}/chat-bindings/{bid}', {
                params: { path: { id: instance.id, bid: removing.id } },
              }),
            )
          }
          onDone={changed}
          onClose={() => setRemoving(null)}
        >
          <p>
            {t('bots.removeText', {
              name: removing.bot_username || removing.platform,
              instance: instance.name,
            })}
          </p>
        </Confirm>
      )}
    </div>
  );
}

function Senders({ instance, bot, onDone }: { instance: string; bot: ChatBinding; onDone: () => void }) {
  const path = { id: instance, bid: bot.id };
  const actions: SenderActions = {
    requests: async () =>
      (await unwrap(api.GET('/instances/{id}/chat-bindings/{bid}/pairing-requests', { params: { path } })))
        .list,
    allow: (who) =>
      unwrap(api.POST('/instances/{id}/chat-bindings/{bid}/senders', { params: { path }, body: who })),
    refuse: (sender_id) =>
      unwrap(
        api.DELETE('/instances/{id}/chat-bindings/{bid}/pairing-requests/{sender_id}', {
          params: { path: { ...path, sender_id } },
        }),
      ),
    remove: (sender_id) =>
      unwrap(
        api.DELETE('/instances/{id}/chat-bindings/{bid}/senders/{sender_id}', {
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

function Health({ id }: { id: string }) {
  const { t } = useText();
  const status = useQuery({
    queryKey: ['instances', 'bot-status', id],
    queryFn: () => unwrap(api.GET('/instances/{id}/bot-status', { params: { path: { id } } })),
    retry: false,
  });
  return (
    <section>
      <h3 className="mb-2 text-sm font-semibold">{t('bots.status')}</h3>
      <QueryState query={status}>
        {(bot) => (
          <p className="text-sm">
            {bot.mode} ·{' '}
            {bot.pending_update_count == null
              ? t('bots.waitingUnknown')
              : t('bots.waiting', { count: bot.pending_update_count })}
            {bot.last_error && <span className="block text-danger">{bot.last_error}</span>}
          </p>
        )}
      </QueryState>
    </section>
  );
}

function AddBot({ id, onClose, onDone }: { id: string; onClose: () => void; onDone: () => void }) {
  const { t } = useText();
  return (
    <FormDialog
      title={t('bots.add')}
      submit={t('bots.add')}
      onClose={onClose}
      onDone={() => {
        toast('success', t('bots.added'));
        onDone();
      }}
      send={(data) => {
        const bot_token = fieldText(data, 'bot_token').trim();
        const chat_id = fieldText(data, 'chat_id').trim();
        if (data.has('configure'))
          return unwrap<unknown>(
            api.POST('/instances/{id}/configure-bot', {
              params: { path: { id } },
              body: { bot_token, ...(chat_id && { chat_id }) },
            }),
          );
        return unwrap<unknown>(
          api.POST('/instances/{id}/chat-bindings', {
            params: { path: { id } },
            body: {
              bot_token,
              chat_id,
              bot_username: fieldText(data, 'bot_username').trim(),
            },
          }),
        );
      }}
    >
      {(refused) => (
        <>
          <PasswordField
            label={t('bots.token')}
            name="bot_token"
            required
            autoComplete="off"
            error={refused('bot_token')}
          />
          <CheckField label={t('bots.configure')} hint={t('bots.configureHint')} name="configure" />
          <Field
            label={t('bots.chatId')}
            name="chat_id"
            hint={t('bots.chatIdHint')}
            error={refused('chat_id')}
          />
          <Field label={t('bots.username')} name="bot_username" error={refused('bot_username')} />
        </>
      )}
    </FormDialog>
  );
}
