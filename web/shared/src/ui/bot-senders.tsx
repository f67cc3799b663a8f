// Who may write to a bot: those who asked, with the code that the bot gave them, and those who are allowed. Nobody needs a shell.
import { useMutation, useQuery } from '@tanstack/react-query';
import { useId, useRef, useState, type SyntheticEvent } from 'react';
import { errorText } from '../api/error-text';
import { useI18n } from '../i18n/i18n';
import { RelativeTime } from '../i18n/time';
import { Button } from './button';
import { Confirm } from './confirm';
import { Field } from './field';
import { fieldText } from './form';
import { Notice } from './notice';

export interface Sender {
  sender_id: string;
  name: string;
  created_at: string;
}

export interface PairingRequest {
  sender_id: string;
  name: string;
  username: string;
  code: string;
  created_at: string;
}

/** What can be done about the senders of one bot. */
export interface SenderActions {
  requests: () => Promise<PairingRequest[]>;
  allow: (who: { code: string } | { sender_id: string }) => Promise<unknown>;
  refuse: (sender: string) => Promise<unknown>;
  remove: (sender: string) => Promise<unknown>;
}

interface BotSendersProps {
  /** The query of the requests stands under this key, which the caller may refresh. */
  queryKey: readonly string[];
  senders: Sender[];
  actions: SenderActions;
  /** Somebody was allowed or removed. */
  onDone: () => void;
}

/** How often requests are looked for while nobody is allowed, and afterwards. */
const LOOK_OFTEN = 10_000;
const LOOK = 60_000;

export function BotSenders({ queryKey, senders, actions, onDone }: BotSendersProps) {
  const i18n = useI18n();
  const { t } = i18n;
  const [removing, setRemoving] = useState<Sender | null>(null);
  const isOpen = senders.length === 0;
  const requests = useQuery({
    queryKey,
    queryFn: actions.requests,
    retry: false,
    refetchInterval: isOpen ? LOOK_OFTEN : LOOK,
  });
  const again = () => {
    void requests.refetch();
    onDone();
  };
  const answer = useMutation({
    mutationFn: ({ request, allow }: { request: PairingRequest; allow: boolean }) =>
      allow ? actions.allow({ code: request.code }) : actions.refuse(request.sender_id),
    onSuccess: again,
  });
  return (
    <div className="space-y-4">
      <section className="space-y-2">
        <h3 className="text-sm font-semibold">{t('senders.requests')}</h3>
        <p className="text-sm text-muted">{t(isOpen ? 'senders.howToAsk' : 'senders.closed')}</p>
        {answer.isError && <Notice tone="error">{errorText(answer.error, i18n)}</Notice>}
        {requests.isError && (
          <Notice tone="warning">{t('senders.unread', { why: errorText(requests.error, i18n) })}</Notice>
        )}
        {requests.data?.length === 0 && !requests.isError && (
          <p className="text-sm">{t('senders.noRequest')}</p>
        )}
        {requests.data !== undefined && requests.data.length > 0 && (
          <ul
            className="divide-y divide-line rounded-lg border border-line"
            aria-label={t('senders.requests')}
          >
            {requests.data.map((request) => (
              <li key={request.sender_id} className="flex flex-wrap items-center gap-3 px-3 py-2.5 text-sm">
                <div className="min-w-0 flex-1 basis-48">
                  <p className="font-medium break-words">
                    {request.name || t('senders.unnamed')}
                    {request.username && <span className="text-muted"> @{request.username}</span>}
                  </p>
                  <p className="text-muted">
                    {t('senders.number', { id: request.sender_id })} ·{' '}
                    <RelativeTime at={request.created_at} />
                  </p>
                  <p>
                    {t('senders.code')} <code className="font-mono font-semibold">{request.code}</code>
                  </p>
                </div>
                <div className="flex flex-wrap gap-2">
                  <Button
                    size="small"
                    look="primary"
                    busy={answer.isPending}
                    aria-label={t('senders.approveOf', { code: request.code })}
                    onClick={() => answer.mutate({ request, allow: true })}
                  >
                    {t('senders.approve')}
                  </Button>
                  {/* Who is not on the list gets no answer anyway, once there is a list. */}
                  {isOpen && (
                    <Button
                      size="small"
                      busy={answer.isPending}
                      aria-label={t('senders.refuseOf', { code: request.code })}
                      onClick={() => answer.mutate({ request, allow: false })}
                    >
                      {t('senders.refuse')}
                    </Button>
                  )}
                </div>
              </li>
            ))}
          </ul>
        )}
      </section>
      <section className="space-y-2">
        <h3 className="text-sm font-semibold">{t('senders.allowed')}</h3>
        {isOpen ? (
          <p className="text-sm">{t('senders.nobody')}</p>
        ) : (
          <ul
            className="divide-y divide-line rounded-lg border border-line"
            aria-label={t('senders.allowed')}
          >
            {senders.map((sender) => (
              <li key={sender.sender_id} className="flex flex-wrap items-center gap-3 px-3 py-2 text-sm">
                <span className="min-w-0 flex-1 basis-40">
                  {sender.name && <span className="block font-medium break-words">{sender.name}</span>}
                  <span className={sender.name ? 'text-muted' : ''}>
                    {t('senders.number', { id: sender.sender_id })}
                  </span>
                </span>
                <Button
                  size="small"
                  look="quiet"
                  aria-label={t('senders.removeOf', { name: sender.name || sender.sender_id })}
                  onClick={() => setRemoving(sender)}
                >
                  {t('senders.remove')}
                </Button>
              </li>
            ))}
          </ul>
        )}
        <AddSender allow={actions.allow} onDone={again} />
      </section>
      {removing && (
        <Confirm
          title={t('senders.removeOf', { name: removing.name || removing.sender_id })}
          confirm={t('senders.remove')}
          run={() => actions.remove(removing.sender_id)}
          onDone={again}
          onClose={() => setRemoving(null)}
        >
          {t(senders.length === 1 ? 'senders.removeLast' : 'senders.removeText')}
        </Confirm>
      )}
    </div>
  );
}

/** A sender by the number at the chat platform, which the bot tells everybody who writes to it. */
function AddSender({ allow, onDone }: { allow: SenderActions['allow']; onDone: () => void }) {
  const i18n = useI18n();
  const { t } = i18n;
  const form = useRef<HTMLFormElement>(null);
  const id = useId();
  const [isWrong, setIsWrong] = useState(false);
  const add = useMutation({
    mutationFn: (sender_id: string) => allow({ sender_id }),
    onSuccess: () => {
      form.current?.reset();
      onDone();
    },
  });
  function submit(event: SyntheticEvent<HTMLFormElement>) {
    event.preventDefault();
    const sender = fieldText(new FormData(event.currentTarget), 'sender_id').trim();
    const isNumber = /^[1-9][0-9]{0,19}$/.test(sender);
    setIsWrong(!isNumber);
    if (isNumber && !add.isPending) add.mutate(sender);
  }
  return (
    <form ref={form} noValidate onSubmit={submit} className="space-y-2">
      {add.isError && <Notice tone="error">{errorText(add.error, i18n)}</Notice>}
      <Field
        id={`${id}-sender`}
        label={t('senders.byNumber')}
        name="sender_id"
        inputMode="numeric"
        autoComplete="off"
        maxLength={20}
        hint={t('senders.byNumberHint')}
        error={isWrong ? t('senders.notANumber') : null}
      />
      <Button type="submit" size="small" busy={add.isPending}>
        {t('senders.add')}
      </Button>
    </form>
  );
}
