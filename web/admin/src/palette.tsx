// Ctrl/⌘K: jumps to any page, user, instance, server or task, and runs actions.
import { useQueries } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { useLogout } from '@tidepool/shared/account/use-logout';
import { setTheme } from '@tidepool/shared/theme';
import type { PaletteText } from '@tidepool/shared/ui/command-key';
import { CommandPalette, type Command } from '@tidepool/shared/ui/command-palette';
import { Bot, ListChecks, LogOut, Moon, Plus, Server, Sun, Upload, UserRound } from 'lucide-react';
import { useDeferredValue } from 'react';
import { useLocation } from 'wouter';
import { api } from './api';
import { useRights } from './me';
import { useText } from './messages';
import { useNavigation } from './navigation';
import { useTaskName } from './parts/task-status';
import { useOpenTask } from './task-drawer';

const EACH = 5;

interface PaletteProps extends PaletteText {
  onClose: () => void;
}

export default function Palette({ text, onText, onReady, onClose }: PaletteProps) {
  const { t } = useText();
  const [, navigate] = useLocation();
  const wanted = useDeferredValue(text.trim());
  const found = useFound(wanted);
  const pages = useNavigation();
  const logout = useLogout();
  const { may } = useRights();
  const matches = (label: string) => label.toLowerCase().includes(wanted.toLowerCase());

  const go = (href: string) => () => navigate(href);
  const actions: Command[] = [
    ...(may('servers.manage')
      ? [{ id: 'new-server', label: t('servers.add'), icon: Plus, run: go('/servers?new=1') }]
      : []),
    ...(may('instances.manage')
      ? [{ id: 'new-instance', label: t('instances.add'), icon: Plus, run: go('/instances?new=1') }]
      : []),
    ...(may('people.manage')
      ? [
          { id: 'new-user', label: t('users.add'), icon: Plus, run: go('/users?new=1') },
          { id: 'import-users', label: t('users.import'), icon: Upload, run: go('/users?import=1') },
        ]
      : []),
    { id: 'dark', label: t('palette.dark'), icon: Moon, run: () => setTheme('dark') },
    { id: 'light', label: t('palette.light'), icon: Sun, run: () => setTheme('light') },
    { id: 'logout', label: t('account.logout'), icon: LogOut, run: () => void logout() },
  ];
  return (
    <CommandPalette
      open
      onClose={onClose}
      placeholder={t('palette.placeholder')}
      text={text}
      onText={onText}
      onReady={onReady}
      busy={found.busy}
      groups={[
        ...found.groups,
        {
          label: t('palette.pages'),
          commands: pages
            .filter(({ label }) => matches(label))
            .map(({ href, label, icon }) => ({ id: `page-${href}`, label, icon, run: go(href) })),
        },
        { label: t('palette.actions'), commands: actions.filter(({ label }) => matches(label)) },
      ]}
    />
  );
}

/** Records whose name, id or e-mail contains the text. */
function useFound(q: string) {
  const { t } = useText();
  const [, navigate] = useLocation();
  const openTask = useOpenTask();
  const taskName = useTaskName();
  const { may } = useRights();
  const query = { q, page: 1, page_size: EACH };
  const enabled = q.length > 0;
  const [instances, users, servers, tasks] = useQueries({
    queries: [
      {
        queryKey: ['instances', 'find', q],
        queryFn: () => unwrap(api.GET('/instances', { params: { query } })),
        enabled,
      },
      {
        queryKey: ['users', 'find', q],
        queryFn: () => unwrap(api.GET('/users', { params: { query } })),
        enabled: enabled && may('people.read'),
      },
      {
        queryKey: ['servers', 'find', q],
        queryFn: () => unwrap(api.GET('/servers', { params: { query } })),
        enabled,
      },
      {
        queryKey: ['tasks', 'find', q],
        queryFn: () => unwrap(api.GET('/tasks', { params: { query } })),
        enabled,
      },
    ],
  });
  const at = (path: string, id: string) => () => navigate(`${path}${encodeURIComponent(id)}`);
  return {
    busy: enabled && [instances, users, servers, tasks].some((one) => one.isFetching),
    groups: [
      {
        label: t('nav.instances'),
        commands: (instances.data?.list ?? []).map((one) => ({
          id: `instance-${one.id}`,
          label: one.name,
          hint: one.assigned_email ?? one.id,
          icon: Bot,
          run: at('/instances?open=', one.id),
        })),
      },
      {
        label: t('nav.users'),
        commands: (users.data?.list ?? []).map((one) => ({
          id: `user-${one.id}`,
          label: one.name || one.email,
          hint: one.email,
          icon: UserRound,
          run: at('/users?open=', one.id),
        })),
      },
      {
        label: t('nav.servers'),
        commands: (servers.data?.list ?? []).map((one) => ({
          id: `server-${one.id}`,
          label: one.name,
          hint: one.host,
          icon: Server,
          run: at('/servers/', one.id),
        })),
      },
      {
        label: t('nav.tasks'),
        commands: (tasks.data?.list ?? []).map((one) => ({
          id: `task-${one.id}`,
          label: taskName(one.type),
          hint: one.instance_id ?? one.id,
          icon: ListChecks,
          run: () => openTask(one.id),
        })),
      },
    ],
  };
}
