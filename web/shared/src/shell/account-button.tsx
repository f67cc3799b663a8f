// The button of the account menu, which stands there before the menu's code does.
import { ChevronsUpDown, UserRound } from 'lucide-react';
import { Suspense } from 'react';
import { useI18n, type I18n, type SharedKey } from '../i18n/i18n';
import { lazyPart, type AwayProps } from '../lazy-part';
import { Nothing } from './away';

export interface Account {
  name: string;
  email: string;
}

export interface AccountProps {
  /** Undefined until it is known. */
  account: Account | undefined;
  /** Shows the name beside the initials. */
  wide: boolean;
}

/** With what places it on the screen it is a tenth of what a page may load at first. */
const Menu = lazyPart(() => import('./account-menu'), NoMenuYet);

export function AccountMenu(props: AccountProps) {
  return (
    <Suspense fallback={<NoMenu {...props} />}>
      <Menu {...props} />
    </Suspense>
  );
}

function NoMenu({ account, wide }: AccountProps) {
  const { t } = useI18n();
  return (
    <button type="button" disabled aria-label={accountLabel(t, account)} className={accountButton(wide)}>
      <AccountFace account={account} wide={wide} />
    </button>
  );
}

function NoMenuYet({ retry, again, ...props }: AccountProps & AwayProps) {
  return (
    <>
      <NoMenu {...props} />
      <Nothing retry={retry} again={again} />
    </>
  );
}

const nameOf = (account: Account | undefined) => account?.name || account?.email || '';

export function accountLabel(t: I18n<SharedKey>['t'], account: Account | undefined): string {
  const name = nameOf(account);
  return name ? `${t('account.menu')}: ${name}` : t('account.menu');
}

export function accountButton(wide: boolean): string {
  return `flex min-h-10 items-center gap-2.5 rounded-lg p-1.5 text-start hover:bg-sunken data-[state=open]:bg-sunken ${wide ? 'w-full' : ''}`;
}

export function AccountFace({ account, wide }: AccountProps) {
  const name = nameOf(account);
  return (
    <>
      <span
        aria-hidden="true"
        className="flex size-8 shrink-0 items-center justify-center rounded-full bg-accent-soft text-sm font-semibold text-accent-strong"
      >
        {name ? initials(name) : <UserRound className="size-4" />}
      </span>
      {wide && (
        <>
          <span className="min-w-0 flex-1">
            <span className="block h-5 truncate text-sm font-medium">{name}</span>
            <span className="block h-4 truncate text-xs text-muted">{account?.email}</span>
          </span>
          <ChevronsUpDown className="size-4 shrink-0 text-muted" aria-hidden="true" />
        </>
      )}
    </>
  );
}

/** "Ada Lovelace" → AL; by characters, not UTF-16 units, so that no name is cut in half. */
function initials(name: string): string {
  const words = name.trim().split(/\s+/);
  const first = Array.from(words[0] ?? '')[0] ?? '';
  const last = words.length > 1 ? (Array.from(words.at(-1) ?? '')[0] ?? '') : '';
  return (first + last).toUpperCase();
}
