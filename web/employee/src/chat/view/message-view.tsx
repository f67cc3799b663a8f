// One message of the thread: a prompt on the right with what became of it, a reply across the width with what it cost.
import { RelativeTime } from '@tidepool/shared/i18n/time';
import { Button } from '@tidepool/shared/ui/button';
import { Mark } from '@tidepool/shared/ui/mark';
import { IconButton } from '@tidepool/shared/ui/icon-button';
import { Check, Pencil, RotateCw, TriangleAlert } from 'lucide-react';
import { memo } from 'react';
import { useText } from '../../messages';
import { compact, seconds, usd } from '../../money';
import { CopyButton } from '../copy-button';
import type { Failure, Message } from '../engine/types';
import { useFailureText } from '../failure-text';
import { Formatted } from '../markdown/formatted';
import { Files } from './files';
import { Folds } from './folds';
import { Waiting } from './waiting';

const ON_DEMAND =
  'opacity-0 transition-opacity group-hover:opacity-100 group-focus-within:opacity-100 pointer-coarse:opacity-100';

interface MessageViewProps {
  message: Message;
  /** Which one it is, of how many: not all are in the page. */
  place: number;
  of: number;
  unsaved: 'failed' | 'saving' | undefined;
  /** The newest reply offers to be asked again; its tools are always in view. */
  newest: boolean;
  busy: boolean;
  onRetry: (id: string) => void;
  onRetrySave: (id: string) => void;
  onEdit: (message: Message) => void;
  onRegenerate: () => void;
}

export const MessageView = memo(function MessageView(props: MessageViewProps) {
  return props.message.role === 'user' ? <Prompt {...props} /> : <Reply {...props} />;
});

function Prompt({ message, place, of, unsaved, busy, onRetry, onRetrySave, onEdit }: MessageViewProps) {
  const { t } = useText();
  return (
    <article
      aria-label={t('chat.you')}
      aria-posinset={place}
      aria-setsize={of}
      className="group flex flex-col items-end py-2"
    >
      <div
        data-said
        className={`max-w-[min(85%,38rem)] rounded-2xl rounded-ee-md px-4 py-2.5 whitespace-pre-wrap ${message.status === 'failed' ? 'bg-danger-soft text-danger' : 'bg-accent-soft'}`}
      >
        {message.text}
      </div>
      {message.files && (
        <div className="mt-1.5 max-w-[min(85%,38rem)]">
          <Files files={message.files} />
        </div>
      )}
      <div className="flex min-h-8 flex-wrap items-center justify-end gap-x-2 text-xs text-muted">
        {unsaved && <NotSaved state={unsaved} onRetry={() => onRetrySave(message.id)} />}
        <PromptState message={message} onRetry={() => onRetry(message.id)} />
        <span className={`flex items-center ${ON_DEMAND}`}>
          <span className="px-1">
            <RelativeTime at={message.at} />
          </span>
          <IconButton icon={Pencil} label={t('chat.edit')} disabled={busy} onClick={() => onEdit(message)} />
          <CopyButton text={message.text} label={t('chat.copyPrompt')} />
        </span>
      </div>
    </article>
  );
}

function PromptState({ message, onRetry }: { message: Message; onRetry: () => void }) {
  const { t } = useText();
  if (message.status === 'queued') return <span role="status">{t('chat.queued')}</span>;
  if (message.status === 'sending') return <span>{t('chat.sending')}</span>;
  if (message.status === 'sent')
    return (
      <span role="img" aria-label={t('chat.sent')} title={t('chat.sent')} className={ON_DEMAND}>
        <Check className="size-3.5" aria-hidden="true" />
      </span>
    );
  if (message.status !== 'failed') return null;
  return (
    <span role="alert" className="flex flex-wrap items-center justify-end gap-x-2 text-sm text-danger">
      <span className="flex items-center gap-1.5 font-medium">
        <TriangleAlert className="size-4 shrink-0" aria-hidden="true" />
        <FailureText failure={message.failure} />
      </span>
      <button
        type="button"
        className="min-h-8 rounded px-1 font-medium underline underline-offset-2"
        onClick={onRetry}
      >
        {t('chat.sendAgain')}
      </button>
    </span>
  );
}

function FailureText({ failure }: { failure: Failure | undefined }) {
  return useFailureText(failure);
}

function Reply({ message, place, of, unsaved, newest, busy, onRetrySave, onRegenerate }: MessageViewProps) {
  const { t } = useText();
  const running = message.status === 'streaming';
  const empty = message.text === '' && !message.reasoning && !message.tools?.length;
  return (
    <article
      aria-label={t('chat.assistant')}
      aria-busy={running}
      aria-posinset={place}
      aria-setsize={of}
      className="group flex gap-3 py-3"
    >
      <Mark className="mt-0.5 hidden size-6 shrink-0 text-accent sm:block" />
      <div className="min-w-0 flex-1">
        <Folds message={message} />
        {running && empty ? (
          <Waiting since={message.at} phase={message.phase} />
        ) : empty ? null : (
          <div data-said className={running ? 'chat-caret' : ''}>
            <Formatted text={message.text} growing={running} />
          </div>
        )}
        {message.status === 'broken' && (
          <div
            role="alert"
            className="mt-2 flex flex-wrap items-center gap-x-3 gap-y-1.5 rounded-lg bg-danger-soft px-3 py-1.5 text-sm text-danger"
          >
            <p className="flex min-h-8 min-w-0 flex-1 basis-52 items-center gap-2">
              <TriangleAlert className="size-4 shrink-0" aria-hidden="true" />
              <span>{message.failure ? <FailureText failure={message.failure} /> : t('chat.broken')}</span>
            </p>
            {newest && !busy && (
              <Button size="small" onClick={onRegenerate}>
                <RotateCw className="size-4" aria-hidden="true" />
                {t('chat.regenerate')}
              </Button>
            )}
          </div>
        )}
        {!running && (
          <div className="mt-1 flex min-h-8 flex-wrap items-center gap-x-1 text-xs text-muted">
            <Cost message={message} />
            <span className={`flex items-center ${newest ? '' : ON_DEMAND}`}>
              {message.text !== '' && <CopyButton text={message.text} label={t('chat.copyReply')} />}
              {newest && !busy && message.status !== 'broken' && (
                <IconButton icon={RotateCw} label={t('chat.regenerate')} onClick={onRegenerate} />
              )}
            </span>
            {unsaved && <NotSaved state={unsaved} onRetry={() => onRetrySave(message.id)} />}
          </div>
        )}
      </div>
    </article>
  );
}

function Cost({ message }: { message: Message }) {
  const { t, locale, number } = useText();
  const { usage, latencyMs, model, status } = message;
  const parts: { key: string; text: string; title?: string }[] = [];
  if (status === 'stopped') parts.push({ key: 'stopped', text: t('chat.stopped') });
  if (usage)
    parts.push({
      key: 'tokens',
      text: t('chat.tokens', { count: compact(usage.total, locale) }),
      title: t('chat.tokensSplit', { prompt: number(usage.prompt), completion: number(usage.completion) }),
    });
  if (usage && usage.cost !== null) parts.push({ key: 'cost', text: usd(usage.cost, locale) });
  if (latencyMs !== undefined) parts.push({ key: 'latency', text: seconds(latencyMs, locale) });
  if (model) parts.push({ key: 'model', text: model });
  return (
    <span className="flex flex-wrap items-center gap-x-1.5 pe-1 tabular-nums">
      {parts.map((part, index) => (
        <span key={part.key} title={part.title}>
          {index > 0 && <span aria-hidden="true">· </span>}
          {part.text}
        </span>
      ))}
      {parts.length === 0 && <RelativeTime at={message.at} />}
    </span>
  );
}

function NotSaved({ state, onRetry }: { state: 'failed' | 'saving'; onRetry: () => void }) {
  const { t } = useText();
  return (
    <span className="flex items-center gap-1 text-warning">
      {t(state === 'saving' ? 'chat.saving' : 'chat.notSaved')}
      {state === 'failed' && (
        <button type="button" className="min-h-8 rounded px-1 underline underline-offset-2" onClick={onRetry}>
          {t('chat.saveAgain')}
        </button>
      )}
    </span>
  );
}
