// The pages that the navigation and the command window lead to.
import {
  BriefcaseBusiness,
  ChartColumn,
  MessageCircle,
  Store,
  UserRound,
  Waves,
  type LucideIcon,
} from 'lucide-react';
import type { Key } from './messages';

export const PAGES: readonly { href: string; label: Key; icon: LucideIcon }[] = [
  { href: '/', label: 'nav.chat', icon: MessageCircle },
  { href: '/usage', label: 'nav.usage', icon: ChartColumn },
  { href: '/professions', label: 'nav.professions', icon: BriefcaseBusiness },
  { href: '/marketplace', label: 'nav.marketplace', icon: Store },
  { href: '/assistant', label: 'nav.assistant', icon: Waves },
  { href: '/profile', label: 'nav.profile', icon: UserRound },
];
