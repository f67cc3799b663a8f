// The frame around every signed-in page of the console; the list names the pages that exist.
import { SideShell } from '@tidepool/shared/shell/shell';
import { House, UserRound } from 'lucide-react';
import type { ReactNode } from 'react';
import { useMe } from './me';
import { useText } from './messages';

export default function Frame({ children }: { children: ReactNode }) {
  const { t } = useText();
  const me = useMe();
  const items = [
    { href: '/', label: t('nav.home'), icon: House },
    { href: '/profile', label: t('nav.profile'), icon: UserRound },
  ];
  return (
    <SideShell tag={t('app.tag')} items={items} account={me.data}>
      {children}
    </SideShell>
  );
}
