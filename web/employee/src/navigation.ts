// The pages that the navigation and the command window lead to.
import {
  BriefcaseBusiness,
  ChartColumn,
  History,
  MessageCircle,
  Store,
  UserRound,
  Waves,
  type LucideIcon,
} from 'lucide-react';
import type { Key } from './messages';

interface AppPage {
  href: string;
  label: Key;
  icon: LucideIcon;
  /** The account menu leads there as well: a narrow header has no room for it. */
  inMenu?: boolean;
}

export const PAGES: readonly AppPage[] = [
  { href: '/', label: 'nav.chat', icon: MessageCircle },
  { href: '/usage', label: 'nav.usage', icon: ChartColumn },
  { href: '/professions', label: 'nav.professions', icon: BriefcaseBusiness },
  { href: '/marketplace', label: 'nav.marketplace', icon: Store },
  { href: '/assistant', label: 'nav.assistant', icon: Waves },
  { href: '/history', label: 'nav.history', icon: History },
  { href: '/profile', label: 'nav.profile', icon: UserRound, inMenu: true },
];
