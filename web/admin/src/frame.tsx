// The frame around every signed-in page of the console: navigation, search, live state, and what may open over any page.
import { lazyPart } from '@tidepool/shared/lazy-part';
import { Nothing } from '@tidepool/shared/shell/away';
import { CloseAway } from '@tidepool/shared/shell/close-away';
import { SideShell } from '@tidepool/shared/shell/shell';
import { useCommandKey, usePaletteText } from '@tidepool/shared/ui/command-key';
import { Toaster } from '@tidepool/shared/ui/toast';
import { Search } from 'lucide-react';
import { Suspense, useCallback, useState, type ReactNode } from 'react';
import { LiveButton, LiveProvider } from './live';
import { useMe } from './me';
import { useText } from './messages';
import { useNavigation } from './navigation';
import { ReadablePage } from './parts/allowed';

const Palette = lazyPart(() => import('./palette'), CloseAway);
const ResetBanner = lazyPart(() => import('@tidepool/shared/account/second-factor/reset-banner'), Nothing);
const TaskDrawer = lazyPart(async () => ({ default: (await import('./task-drawer')).TaskDrawer }), Nothing);

export default function Frame({ children }: { children: ReactNode }) {
  const { t } = useText();
  const me = useMe();
  const items = useNavigation();
  const [searching, setSearching] = useState(false);
  const close = useCallback(() => setSearching(false), []);
  const typed = usePaletteText(searching, close);
  useCommandKey(useCallback(() => setSearching((before) => !before), []));
  const tools = (
    <div className="flex items-center gap-1">
      <button
        type="button"
        onClick={() => setSearching(true)}
        className="flex min-h-9 min-w-9 flex-1 items-center justify-center gap-2 rounded-lg text-sm whitespace-nowrap text-muted hover:bg-sunken hover:text-ink md:justify-start md:border md:border-line md:px-2.5"
      >
        <Search className="size-4 shrink-0" aria-hidden="true" />
        <span className="sr-only md:not-sr-only">{t('palette.open')}</span>
        <kbd aria-hidden="true" className="ms-auto hidden font-sans text-xs md:inline">
          {navigator.userAgent.includes('Mac') ? '⌘K' : 'Ctrl K'}
        </kbd>
      </button>
      <LiveButton />
    </div>
  );
  const notice = me.data?.password_reset && (
    <Suspense fallback={null}>
      <ResetBanner reset={me.data.password_reset} onSeen={() => void me.refetch()} />
    </Suspense>
  );
  return (
    <LiveProvider>
      <SideShell tag={t('app.tag')} items={items} account={me.data} tools={tools} notice={notice}>
        <ReadablePage>{children}</ReadablePage>
      </SideShell>
      <Suspense fallback={null}>
        <TaskDrawer />
        {searching && <Palette {...typed} onClose={close} />}
      </Suspense>
      <Toaster />
    </LiveProvider>
  );
}
