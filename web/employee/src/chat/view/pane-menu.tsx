// What else one can do with a chat: find something in it or in the history, take it along as a file, choose the way to talk.
import * as Radix from '@radix-ui/react-dropdown-menu';
import { saveFile } from '@tidepool/shared/table/csv';
import { MENU, MENU_ITEM } from '@tidepool/shared/ui/menu';
import { Bot, Check, Download, Ellipsis, History, RotateCw, TextSearch } from 'lucide-react';
import { useRef } from 'react';
import { useLocation } from 'wouter';
import type { Instance } from '../../instances-query';
import { useText } from '../../messages';
import { threadMarkdown } from '../export';
import type { Preference } from '../preference';
import type { Chat } from '../use-chat';

const WAYS: readonly Preference[] = ['auto', 'socket', 'embed', 'gateway'];

export interface PaneMenuProps {
  instance: Instance;
  chat: Chat;
  onFind: () => void;
}

export default function PaneMenu({ instance, chat, onFind }: PaneMenuProps) {
  const { t, locale } = useText();
  const [, navigate] = useLocation();
  const { messages } = chat.state;
  const id = encodeURIComponent(instance.id);
  const finds = useRef(false);
  return (
    <Radix.Root modal={false}>
      <Radix.Trigger
        aria-label={t('menu.label')}
        className="flex size-9 shrink-0 items-center justify-center rounded-lg text-muted hover:bg-sunken hover:text-ink data-[state=open]:bg-sunken"
      >
        <Ellipsis className="size-5" aria-hidden="true" />
      </Radix.Trigger>
      {/* Where its button is, not at the end of the page: it stays inside a landmark. */}
      <Radix.Content
        align="end"
        sideOffset={4}
        collisionPadding={8}
        className={`${MENU} w-72`}
        onCloseAutoFocus={(event) => {
          // The search takes the focus, the button would take it back.
          if (finds.current) event.preventDefault();
          finds.current = false;
        }}
      >
        {chat.engine.kind !== 'embed' && (
          <Radix.Item
            className={MENU_ITEM}
            disabled={messages.length === 0}
            onSelect={() => {
              finds.current = true;
              onFind();
            }}
          >
            <TextSearch className="size-4" aria-hidden="true" />
            {t('find.label')}
          </Radix.Item>
        )}
        <Radix.Item className={MENU_ITEM} onSelect={() => navigate(`/history?instance=${id}`)}>
          <History className="size-4" aria-hidden="true" />
          {t('menu.history')}
        </Radix.Item>
        <Radix.Item
          className={MENU_ITEM}
          disabled={messages.length === 0}
          onSelect={() =>
            saveFile(
              `${instance.id}-${new Date().toISOString().slice(0, 10)}.md`,
              threadMarkdown(instance.name, messages, locale, { you: t('chat.you') }),
              'text/markdown;charset=utf-8',
            )
          }
        >
          <Download className="size-4" aria-hidden="true" />
          {t('menu.export')}
        </Radix.Item>
        {chat.engine.kind === 'embed' && (
          <Radix.Item className={MENU_ITEM} onSelect={() => chat.engine.reconnect()}>
            <RotateCw className="size-4" aria-hidden="true" />
            {t('menu.reload')}
          </Radix.Item>
        )}
        <Radix.Item className={MENU_ITEM} onSelect={() => navigate(`/assistant?instance=${id}`)}>
          <Bot className="size-4" aria-hidden="true" />
          {t('menu.assistant')}
        </Radix.Item>
        <Radix.Separator className="mx-2 my-1.5 h-px bg-line" />
        <Radix.RadioGroup
          value={chat.preference}
          onValueChange={(value) => chat.prefer(value as Preference)}
          aria-label={t('menu.way')}
        >
          <Radix.Label className="px-2.5 py-1 text-xs text-muted">{t('menu.way')}</Radix.Label>
          {WAYS.map((way) => (
            <Radix.RadioItem key={way} value={way} className={`${MENU_ITEM} items-start`}>
              <span className="flex-1">
                <span className="block">{t(`way.${way}`)}</span>
                <span className="block text-xs text-muted">
                  {way === 'auto'
                    ? t('way.autoNow', { way: t(`way.${chat.engine.kind}`) })
                    : t(`way.${way}Text`)}
                </span>
              </span>
              <Radix.ItemIndicator className="pt-0.5">
                <Check className="size-4" aria-hidden="true" />
              </Radix.ItemIndicator>
            </Radix.RadioItem>
          ))}
        </Radix.RadioGroup>
      </Radix.Content>
    </Radix.Root>
  );
}
