// The column and the pane together: the column stands beside the pane, can be put away, and under 768 px opens over it.
import * as Dialog from '@radix-ui/react-dialog';
import { lazyPart } from '@tidepool/shared/lazy-part';
import { PageTitle } from '@tidepool/shared/shell/page';
import { readStored, writeStored } from '@tidepool/shared/storage';
import { Suspense, useCallback, useEffect, useEffectEvent, useState, type ReactNode } from 'react';
import { useSetup } from '../claim/setups';
import type { Instance } from '../instances-query';
import { useText } from '../messages';
import { onNewChat } from '../shortcuts';
import './chat.css';
import { useChat, type Chat } from './use-chat';
import { Column } from './view/column';
import { Pane } from './view/pane';

/** Only a freshly claimed assistant is set up. */
const SetupView = lazyPart(() => import('../claim/setup-view'));

const COLLAPSED = 'tidepool.column.collapsed';

interface RoomProps {
  account: string;
  instances: readonly Instance[];
  selected: Instance;
  onSelect: (id: string) => void;
  /** The stored conversation to go on with, which the address names. */
  conversation?: string | null;
  /** It is open: a reload is not to open it again when somebody has moved on. */
  onOpened?: () => void;
}

/** An instance that is being set up has nothing to talk to yet. */
export function Room(props: RoomProps) {
  const setup = useSetup(props.selected.id);
  return setup === null ? (
    <ChatRoom {...props} />
  ) : (
    <Layout {...props} chat={null}>
      {() => (
        <Suspense fallback={null}>
          <SetupView instance={props.selected} task={setup} />
        </Suspense>
      )}
    </Layout>
  );
}

function ChatRoom(props: RoomProps) {
  const { account, selected, conversation = null, onOpened } = props;
  const chat = useChat(account, selected);
  const { engine } = chat;
  const opened = useEffectEvent(() => onOpened?.());
  useEffect(() => {
    if (conversation === null) return;
    engine.openConversation(conversation);
    opened();
  }, [engine, conversation]);
  return (
    <Layout {...props} chat={chat}>
      {(columnShown, onShowColumn) => (
        <Pane
          key={selected.id}
          account={account}
          instance={selected}
          chat={chat}
          columnShown={columnShown}
          onShowColumn={onShowColumn}
        />
      )}
    </Layout>
  );
}

interface LayoutProps extends RoomProps {
  chat: Chat | null;
  children: (columnShown: boolean, onShowColumn: () => void) => ReactNode;
}

function Layout({ instances, selected, onSelect, chat, children }: LayoutProps) {
  const { t } = useText();
  const [collapsed, setCollapsed] = useState(() => readStored(COLLAPSED) === '1');
  const [drawer, setDrawer] = useState(false);
  const engine = chat?.engine;

  const newChat = useCallback(() => {
    engine?.newConversation();
    setDrawer(false);
    document.querySelector<HTMLTextAreaElement>('form textarea')?.focus();
  }, [engine]);
  useEffect(() => onNewChat(newChat), [newChat]);

  function collapse(next: boolean) {
    writeStored(COLLAPSED, next ? '1' : null);
    setCollapsed(next);
  }

  const column = { instances, selected, chat, onNewChat: newChat };
  return (
    <div className="flex h-full min-h-0">
      <PageTitle title={selected.name} />
      {!collapsed && (
        <aside aria-label={t('column.label')} className="hidden w-70 shrink-0 border-e border-line md:block">
          <Column {...column} onSelect={onSelect} onCollapse={() => collapse(true)} />
        </aside>
      )}
      <Dialog.Root open={drawer} onOpenChange={setDrawer}>
        <Dialog.Portal>
          <Dialog.Overlay className="fade-in fixed inset-0 z-40 bg-[#000]/45 md:hidden" />
          <Dialog.Content
            aria-describedby={undefined}
            className="fixed inset-y-0 start-0 z-50 w-70 border-e border-line shadow-high outline-none md:hidden"
          >
            <Dialog.Title className="sr-only">{t('column.label')}</Dialog.Title>
            <Column
              {...column}
              onSelect={(id) => {
                onSelect(id);
                setDrawer(false);
              }}
              onCollapse={() => setDrawer(false)}
            />
          </Dialog.Content>
        </Dialog.Portal>
      </Dialog.Root>
      {children(!collapsed, () =>
        window.matchMedia('(min-width: 768px)').matches ? collapse(false) : setDrawer(true),
      )}
    </div>
  );
}
