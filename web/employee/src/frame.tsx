// The frame around every signed-in page of the employee app; the list names the pages that exist.
import { lazyPart } from '@tidepool/shared/lazy-part';
import { Nothing } from '@tidepool/shared/shell/away';
import { CloseAway } from '@tidepool/shared/shell/close-away';
import { HeaderShell } from '@tidepool/shared/shell/shell';
import { useCommandKey, usePaletteText } from '@tidepool/shared/ui/command-key';
import { Toaster } from '@tidepool/shared/ui/toast';
import { Search } from 'lucide-react';
import { Suspense, useCallback, useEffect, useState, type ReactNode } from 'react';
import { useLocation } from 'wouter';
import { useText } from './messages';
import { PAGES } from './navigation';
import { useProfile } from './profile-query';
import { isPlainKey, isShortcut, wishNewChat } from './shortcuts';

const Palette = lazyPart(() => import('./palette'), CloseAway);
const Help = lazyPart(() => import('./help'), CloseAway);
const ResetBanner = lazyPart(() => import('@tidepool/shared/account/second-factor/reset-banner'), Nothing);

export default function Frame({ children }: { children: ReactNode }) {
  const { t } = useText();
  const profile = useProfile();
  const [location, navigate] = useLocation();
  const [open, setOpen] = useState<'palette' | 'help' | null>(null);

  const newChat = useCallback(() => {
    if (!wishNewChat()) navigate('/');
  }, [navigate]);

  const close = useCallback(() => setOpen(null), []);
  const typed = usePaletteText(open === 'palette', close);
  useCommandKey(useCallback(() => setOpen('palette'), []));
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (isShortcut(event, 'o', true)) newChat();
      else if (isShortcut(event, '/') || isPlainKey(event, '?')) setOpen('help');
      else return;
      event.preventDefault();
    };
    window.addEventListener('keydown', press);
    return () => window.removeEventListener('keydown', press);
  }, [newChat]);

  const items = PAGES.map(({ label, ...page }) => ({ ...page, label: t(label) }));
  return (
    <HeaderShell
      items={items}
      account={profile.data}
      fill={location === '/'}
      notice={
        profile.data?.password_reset && (
          <Suspense fallback={null}>
            <ResetBanner reset={profile.data.password_reset} onSeen={() => void profile.refetch()} />
          </Suspense>
        )
      }
      tools={
        <button
          type="button"
          onClick={() => setOpen('palette')}
          aria-label={t('palette.open')}
          title={t('palette.hint')}
          className="flex size-10 items-center justify-center rounded-lg text-muted hover:bg-sunken hover:text-ink"
        >
          <Search className="size-5" aria-hidden="true" />
        </button>
      }
    >
      {children}
      <Toaster />
      <Suspense fallback={null}>
        {open === 'palette' && (
          <Palette {...typed} onClose={close} onHelp={() => setOpen('help')} onNewChat={newChat} />
        )}
        {open === 'help' && <Help onClose={close} />}
      </Suspense>
    </HeaderShell>
  );
}
