// The right pane: the chosen instance's chat, or its own window in a frame.
import { lazyPart, type AwayProps } from '@tidepool/shared/lazy-part';
import { Nothing } from '@tidepool/shared/shell/away';
import { IconButton } from '@tidepool/shared/ui/icon-button';
import { Ellipsis, PanelLeftOpen } from 'lucide-react';
import { Suspense, useCallback, useEffect, useRef, useState } from 'react';
import type { Instance } from '../../instances-query';
import { useText } from '../../messages';
import { isPlainKey } from '../../shortcuts';
import { useDraft } from '../draft';
import { isRunning, type Message } from '../engine/types';
import type { Chat } from '../use-chat';
import { useFiles } from '../use-files';
import { useReplyNotice } from '../use-reply-notice';
import { Composer, type ComposerHandle } from './composer';
import { ConnectionBar, ConnectionMark } from './connection';
import { EmptyThread } from './empty-thread';
import { QuotaBar } from './quota-bar';
import { ThreadView } from './thread-view';

const PaneMenu = lazyPart(() => import('./pane-menu'), NoMenuYet);

/** Its button, until its code is there. */
function NoMenu() {
  const { t } = useText();
  return <IconButton icon={Ellipsis} label={t('menu.label')} size="normal" disabled />;
}

function NoMenuYet({ retry, again }: AwayProps) {
  return (
    <>
      <NoMenu />
      <Nothing retry={retry} again={again} />
    </>
  );
}

interface PaneProps {
  account: string;
  instance: Instance;
  chat: Chat;
  /** Shows the column, or opens it over the pane. */
  onShowColumn: () => void;
  columnShown: boolean;
}

export function Pane({ account, instance, chat, onShowColumn, columnShown }: PaneProps) {
  const { t } = useText();
  const { engine, state } = chat;
  const [finding, setFinding] = useState(false);
  return (
    <section aria-label={instance.name} className="flex min-w-0 flex-1 flex-col">
      <div className="flex min-h-12 items-center gap-x-2 border-b border-line px-2 py-1 sm:gap-x-3 sm:px-4">
        <IconButton
          icon={PanelLeftOpen}
          label={t('column.show')}
          size="normal"
          className={columnShown ? 'md:hidden' : ''}
          onClick={onShowColumn}
        />
        <div
          className={`flex min-w-0 flex-1 items-center gap-x-2 sm:gap-x-3 ${state.connection.state === 'live' ? '' : 'flex-wrap'}`}
        >
          <h1 className="max-w-full min-w-0 truncate text-[0.9375rem] font-semibold">{instance.name}</h1>
          <ConnectionMark chat={chat} />
        </div>
        <div className="flex shrink-0 items-center gap-2">
          <QuotaBar />
          <Suspense fallback={<NoMenu />}>
            <PaneMenu instance={instance} chat={chat} onFind={() => setFinding(true)} />
          </Suspense>
        </div>
      </div>
      <ConnectionBar chat={chat} />
      {engine.kind === 'embed' ? (
        state.frame !== null && (
          <iframe
            title={t('embed.title', { name: instance.name })}
            src={state.frame}
            sandbox="allow-scripts allow-same-origin allow-forms allow-popups allow-downloads"
            className="min-h-0 flex-1 border-0 bg-surface"
          />
        )
      ) : (
        <Talk account={account} instance={instance} chat={chat} finding={finding} onFind={setFinding} />
      )}
    </section>
  );
}

interface TalkProps extends Pick<PaneProps, 'account' | 'instance' | 'chat'> {
  finding: boolean;
  onFind: (finding: boolean) => void;
}

function Talk({ account, instance, chat, finding, onFind }: TalkProps) {
  const { t } = useText();
  const { engine, state } = chat;
  const [draft, setDraft] = useDraft(account, instance.id);
  const [edited, setEdited] = useState<{ id: string; before: string } | null>(null);
  const composer = useRef<ComposerHandle>(null);
  const files = useFiles(state.attachable);
  useReplyNotice(state.messages, instance.name);

  // Not where a keyboard would come up over half of the screen, nor below what is open over the page.
  useEffect(() => {
    if (window.matchMedia('(pointer: coarse)').matches || document.querySelector('[role=dialog]')) return;
    composer.current?.focus();
  }, []);
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (!isPlainKey(event, '/')) return;
      event.preventDefault();
      composer.current?.focus();
    };
    window.addEventListener('keydown', press);
    return () => window.removeEventListener('keydown', press);
  }, []);
  const lastPrompt = state.messages.findLast((message) => message.role === 'user')?.text;

  // Messages are drawn anew only when they change, so what they call must not change with each letter typed.
  const typed = useRef(draft);
  useEffect(() => {
    typed.current = draft;
  }, [draft]);
  const edit = useCallback(
    (message: Message) => {
      setEdited({ id: message.id, before: typed.current });
      setDraft(message.text);
      composer.current?.focus();
    },
    [setDraft],
  );

  const { missing } = files;
  const filesGone = useCallback(
    (prompt: Message) => {
      edit(prompt);
      missing();
    },
    [edit, missing],
  );

  const reading = useRef(false);
  async function send(text: string) {
    if (reading.current) return;
    reading.current = true;
    const attached = files.files.length === 0 ? [] : await files.read();
    reading.current = false;
    if (attached === null) return;
    if (edited !== null && state.messages.some((message) => message.id === edited.id))
      engine.edit(edited.id, text, attached);
    else engine.send(text, attached);
    files.clear();
    setDraft(edited?.before ?? '');
    setEdited(null);
  }

  return (
    <>
      <ThreadView
        chat={chat}
        instance={instance.id}
        onEdit={edit}
        onFilesGone={filesGone}
        finding={finding}
        onFind={onFind}
        empty={
          state.loaded ? (
            <EmptyThread
              instance={instance}
              onPick={(text) => {
                setDraft(text);
                composer.current?.focus();
              }}
            />
          ) : (
            <p role="status" className="py-10 text-center text-sm text-muted">
              {t('chat.opening')}
            </p>
          )
        }
      />
      <Composer
        ref={composer}
        text={draft}
        onText={setDraft}
        onSend={(written) => void send(written)}
        files={files}
        attachable={state.attachable !== null}
        onStop={() => engine.stop()}
        running={isRunning(state)}
        closed={state.connection.state === 'readonly' ? t('chat.readonly') : null}
        last={lastPrompt}
        onCancelEdit={
          edited === null
            ? null
            : () => {
                setDraft(edited.before);
                setEdited(null);
              }
        }
        editReplaces={engine.kind === 'gateway'}
        instanceName={instance.name}
      />
    </>
  );
}
