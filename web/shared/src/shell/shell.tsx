// The frame around every signed-in page. The employee app has its navigation in a header, which leaves the width to the
// chat; the console has a side bar, which leaves room for many pages. Under 768 px both have a header with a drawer.
import { Suspense, useState, type MouseEvent, type ReactNode } from 'react';
import { Link, useLocation } from 'wouter';
import { useI18n } from '../i18n/i18n';
import { ErrorBoundary } from '../ui/error-boundary';
import { Brand } from '../ui/mark';
import { Skeleton } from '../ui/states';
import { AccountMenu, type Account } from './account-button';
import { Drawer } from './drawer';
import { Nav, type NavItem } from './nav';
import { Moved } from './page';
import { PageFailure } from './page-failure';
import { NewVersion, VersionTag } from './version';

interface ShellProps {
  tag?: string;
  items: readonly NavItem[];
  account: Account | undefined;
  /** Stands above the navigation, and in the header under 768 px: search, the state of live updates. */
  tools?: ReactNode;
  /** Stands above every page until it is dealt with. */
  notice?: ReactNode;
  children: ReactNode;
}

interface HeaderShellProps extends ShellProps {
  /** The page takes the window's height and scrolls inside itself; it shows the version by itself, too. */
  fill?: boolean;
  /** Beside the account menu. */
  tools?: ReactNode;
}

export function HeaderShell({
  tag,
  items,
  account,
  fill = false,
  tools,
  notice,
  children,
}: HeaderShellProps) {
  return (
    <div className={`flex flex-col ${fill ? 'h-dvh' : 'min-h-dvh'}`}>
      <SkipLink />
      <header className="sticky top-0 z-20 border-b border-line bg-surface">
        <div className="flex h-14 items-center gap-2 px-4 sm:px-6">
          <Drawer items={items} tag={tag} foot={<VersionTag />} />
          <HomeLink tag={tag} />
          <div className="ms-2 hidden min-w-0 flex-1 md:block lg:ms-6">
            <Nav items={items} direction="row" />
          </div>
          <div className="ms-auto flex items-center gap-1">
            {tools}
            <AccountMenu account={account} wide={false} />
          </div>
        </div>
      </header>
      {notice}
      <Main fill={fill}>{children}</Main>
      {!fill && (
        <footer className="hidden px-6 pb-4 text-end md:block">
          <VersionTag />
        </footer>
      )}
      <NewVersion />
    </div>
  );
}

export function SideShell({ tag, items, account, tools, notice, children }: ShellProps) {
  return (
    <div className="flex min-h-dvh flex-col md:flex-row">
      <SkipLink />
      <header className="sticky top-0 z-20 flex h-14 items-center gap-2 border-b border-line bg-surface px-4 md:hidden">
        <Drawer items={items} tag={tag} foot={<VersionTag />} />
        <HomeLink tag={tag} brief />
        <div className="ms-auto flex items-center gap-1">
          {tools}
          <AccountMenu account={account} wide={false} />
        </div>
      </header>
      <header className="sticky top-0 z-20 hidden h-dvh w-60 shrink-0 flex-col gap-4 border-e border-line bg-surface p-3 md:flex">
        <div className="px-2 pt-2.5">
          <HomeLink tag={tag} />
        </div>
        {tools}
        <div className="flex-1 overflow-y-auto">
          <Nav items={items} direction="column" />
        </div>
        <div className="space-y-2">
          <AccountMenu account={account} wide />
          <div className="min-h-6 px-2">
            <VersionTag />
          </div>
        </div>
      </header>
      <div className="flex min-w-0 flex-1 flex-col">
        {notice}
        <Main>{children}</Main>
      </div>
      <NewVersion />
    </div>
  );
}

/** `brief` leaves the tag to the label, where there is no room for it. */
function HomeLink({ tag, brief = false }: { tag?: string; brief?: boolean }) {
  const { t } = useI18n();
  return (
    <Link
      href="/"
      className="flex rounded-lg"
      aria-label={`tidepool${tag ? ` ${tag}` : ''}, ${t('nav.home')}`}
    >
      <Brand tag={brief ? undefined : tag} />
    </Link>
  );
}

/** A plain #main would be resolved against <base> and leave the page, so the focus is moved by hand. */
function SkipLink() {
  const { t } = useI18n();
  const jump = (event: MouseEvent) => {
    event.preventDefault();
    document.getElementById('main')?.focus();
  };
  return (
    <a
      href={`${window.location.pathname}#main`}
      onClick={jump}
      className="fixed top-2 left-2 z-50 -translate-y-20 rounded-lg bg-accent px-4 py-2.5 text-sm font-medium text-on-accent focus:translate-y-0"
    >
      {t('app.skip')}
    </a>
  );
}

function Main({ fill = false, children }: { fill?: boolean; children: ReactNode }) {
  const [location] = useLocation();
  const [entry] = useState(location);
  const [moved, setMoved] = useState(false);
  if (!moved && location !== entry) setMoved(true);
  return (
    <main id="main" tabIndex={-1} className={`min-w-0 flex-1 ${fill ? 'min-h-0' : ''}`}>
      <ErrorBoundary resetOn={location} fallback={() => <PageFailure />}>
        <Suspense
          fallback={
            <div className="mx-auto w-full max-w-5xl px-4 py-10 sm:px-8">
              <Skeleton lines={4} />
            </div>
          }
        >
          <Moved value={moved}>{children}</Moved>
        </Suspense>
      </ErrorBoundary>
    </main>
  );
}
