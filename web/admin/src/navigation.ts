// The console's pages, in the order and groups of the side bar, and the permission that each needs; the command palette
// offers the same.
import type { Permission } from '@tidepool/shared/api/registry.gen';
import type { NavItem } from '@tidepool/shared/shell/nav';
import {
  Activity,
  Boxes,
  Briefcase,
  Bot,
  ChartColumn,
  ClipboardList,
  Clock,
  House,
  KeyRound,
  ListChecks,
  ScrollText,
  Server,
  Settings,
  UserRound,
  Users,
} from 'lucide-react';
import { useMemo } from 'react';
import { useRights } from './me';
import { useText } from './messages';

export interface PageItem extends NavItem {
  /** Who lacks it cannot read the page. Every role reads the others, or parts of them. */
  needs?: Permission;
}

/** All of them, whether or not the signed-in administrator may read them. */
export function usePages(): readonly PageItem[] {
  const { t } = useText();
  return useMemo(
    () => [
      { href: '/', label: t('nav.overview'), icon: House },
      { href: '/instances', label: t('nav.instances'), icon: Bot, group: t('nav.fleet') },
      { href: '/servers', label: t('nav.servers'), icon: Server, group: t('nav.fleet') },
      { href: '/professions', label: t('nav.professions'), icon: Briefcase, group: t('nav.fleet') },
      { href: '/marketplace', label: t('nav.marketplace'), icon: Boxes, group: t('nav.fleet') },
      { href: '/users', label: t('nav.users'), icon: Users, group: t('nav.people'), needs: 'people.read' },
      {
        href: '/usage',
        label: t('nav.usage'),
        icon: ChartColumn,
        group: t('nav.people'),
        needs: 'usage.read',
      },
      {
        href: '/requests',
        label: t('nav.requests'),
        icon: ScrollText,
        group: t('nav.people'),
        needs: 'usage.read',
      },
      { href: '/keys', label: t('nav.keys'), icon: KeyRound, group: t('nav.people') },
      { href: '/tasks', label: t('nav.tasks'), icon: ListChecks, group: t('nav.operations') },
      { href: '/jobs', label: t('nav.jobs'), icon: Clock, group: t('nav.operations') },
      { href: '/guardian', label: t('nav.guardian'), icon: Activity, group: t('nav.operations') },
      {
        href: '/audit',
        label: t('nav.audit'),
        icon: ClipboardList,
        group: t('nav.operations'),
        needs: 'audit.read',
      },
      { href: '/settings', label: t('nav.settings'), icon: Settings, group: t('nav.console') },
      { href: '/profile', label: t('nav.profile'), icon: UserRound, group: t('nav.console') },
    ],
    [t],
  );
}

export function useNavigation(): readonly PageItem[] {
  const { mayNot } = useRights();
  return usePages().filter(({ needs }) => needs === undefined || !mayNot(needs));
}
