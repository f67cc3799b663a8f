// The frame around every signed-in page of the employee app; the list names the pages that exist.
import { HeaderShell } from '@tidepool/shared/shell/shell';
import { House, UserRound } from 'lucide-react';
import type { ReactNode } from 'react';
import { useText } from './messages';
import { useProfile } from './profile-query';

export default function Frame({ children }: { children: ReactNode }) {
  const { t } = useText();
  const profile = useProfile();
  const items = [
    { href: '/', label: t('nav.home'), icon: House },
    { href: '/profile', label: t('nav.profile'), icon: UserRound },
  ];
  return (
    <HeaderShell items={items} account={profile.data}>
      {children}
    </HeaderShell>
  );
}
