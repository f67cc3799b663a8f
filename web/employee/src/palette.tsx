// Ctrl/⌘K: pages, instances, stored messages, and the few things one does from anywhere.
import { useQuery } from '@tanstack/react-query';
import { useLogout } from '@tidepool/shared/account/use-logout';
import { unwrap } from '@tidepool/shared/api/envelope';
import { LANGUAGE_NAMES, LANGUAGES } from '@tidepool/shared/i18n/language';
import { setTheme, THEMES } from '@tidepool/shared/theme';
import type { PaletteText } from '@tidepool/shared/ui/command-key';
import { CommandPalette, type Command } from '@tidepool/shared/ui/command-palette';
import { Bot, Keyboard, Languages, LogOut, MessageSquareText, SquarePen, SunMoon } from 'lucide-react';
import { useDeferredValue } from 'react';
import { useLocation } from 'wouter';
import { api } from './api';
import { useInstances } from './instances-query';
import { useText } from './messages';
import { PAGES } from './navigation';

interface PaletteProps extends PaletteText {
  onClose: () => void;
  onHelp: () => void;
  onNewChat: () => void;
}

export default function Palette({ text, onText, onReady, onClose, onHelp, onNewChat }: PaletteProps) {
  const { t, language, setLanguage } = useText();
  const [, navigate] = useLocation();
  const logout = useLogout();
  const wanted = useDeferredValue(text.trim());
  const instances = useInstances();
  const found = useFound(wanted);

  const pages: Command[] = PAGES.map(({ href, label, icon }) => ({
    id: `page-${href.slice(1)}`,
    label: t(label),
    icon,
    run: () => navigate(href),
  }));
  const assistants: Command[] = (instances.data ?? []).map((one) => ({
    id: `instance-${one.id}`,
    label: one.name,
    hint: one.model,
    icon: Bot,
    run: () => navigate(`/?instance=${encodeURIComponent(one.id)}`),
  }));
  const actions: Command[] = [
    { id: 'new', label: t('column.new'), icon: SquarePen, run: onNewChat },
    ...THEMES.map((theme) => ({
      id: `theme-${theme}`,
      label: t('palette.theme', { theme: t(`preferences.${theme}`) }),
      icon: SunMoon,
      run: () => setTheme(theme),
    })),
    ...LANGUAGES.filter((one) => one !== language).map((one) => ({
      id: `language-${one}`,
      label: LANGUAGE_NAMES[one],
      icon: Languages,
      run: () => void setLanguage(one),
    })),
    { id: 'help', label: t('help.title'), icon: Keyboard, run: onHelp },
    { id: 'logout', label: t('account.logout'), icon: LogOut, run: () => void logout() },
  ];
  const messages: Command[] = (found.data ?? []).map((one) => ({
    id: `message-${one.id}`,
    label: one.content.replaceAll(/\s+/g, ' ').slice(0, 120),
    hint: one.instance_id,
    icon: MessageSquareText,
    run: () => navigate(`/history?q=${encodeURIComponent(wanted)}`),
  }));
  const matching = (list: Command[]) =>
    list.filter(({ label, hint }) =>
      `${label} ${hint ?? ''}`.toLowerCase().includes(text.trim().toLowerCase()),
    );
  return (
    <CommandPalette
      open
      onClose={onClose}
      placeholder={t('palette.placeholder')}
      text={text}
      onText={onText}
      onReady={onReady}
      busy={found.isFetching}
      groups={[
        { label: t('palette.assistants'), commands: matching(assistants) },
        { label: t('palette.pages'), commands: matching(pages) },
        { label: t('palette.actions'), commands: matching(actions) },
        { label: t('palette.messages'), commands: messages },
      ]}
    />
  );
}

/** Stored messages with the wanted text. */
function useFound(wanted: string) {
  return useQuery({
    queryKey: ['history', 'palette', wanted],
    enabled: wanted.length >= 3,
    retry: false,
    queryFn: async () => {
      const query = { q: wanted, size: 6 };
      return (await unwrap(api.GET('/me/chat/history', { params: { query } }))).messages;
    },
  });
}
