// Who is signed in, with the profile, theme, language and the way out.
import * as Menu from '@radix-ui/react-dropdown-menu';
import { Check, LogOut, UserRound } from 'lucide-react';
import type { ReactNode } from 'react';
import { useLocation } from 'wouter';
import { THEME_ICONS } from '../account/preferences';
import { useLogout } from '../account/use-logout';
import { useI18n } from '../i18n/i18n';
import { LANGUAGE_NAMES, LANGUAGES, type Language } from '../i18n/language';
import { setTheme, THEMES, useTheme, type Theme } from '../theme';
import { accountButton, AccountFace, accountLabel, type AccountProps } from './account-button';

const ITEM =
  'flex min-h-9 items-center gap-2.5 rounded-md px-2.5 py-1.5 text-sm select-none outline-none data-highlighted:bg-accent-soft data-highlighted:text-accent-strong';

export default function AccountMenu({ account, wide }: AccountProps) {
  const { t, language, setLanguage } = useI18n();
  const [, navigate] = useLocation();
  const theme = useTheme();
  const logout = useLogout();
  const name = account?.name || account?.email || '';
  return (
    <Menu.Root modal={false}>
      <Menu.Trigger aria-label={accountLabel(t, account)} className={accountButton(wide)}>
        <AccountFace account={account} wide={wide} />
      </Menu.Trigger>
      {/* Not in a portal: so the menu stands inside the header, where screen readers look for it. */}
      <Menu.Content
        align="end"
        sideOffset={6}
        collisionPadding={8}
        className="z-50 max-h-(--radix-dropdown-menu-content-available-height) w-60 overflow-y-auto rounded-xl border border-line bg-surface p-1.5 text-ink shadow-high"
      >
        {account && (
          <Menu.Label className="px-2.5 pt-1.5 pb-2">
            <span className="block truncate text-sm font-medium">{name}</span>
            <span className="block truncate text-xs text-muted">{account.email}</span>
          </Menu.Label>
        )}
        <Menu.Item className={ITEM} onSelect={() => navigate('/profile')}>
          <UserRound className="size-4" aria-hidden="true" />
          {t('nav.profile')}
        </Menu.Item>
        <Divider />
        <Choices
          label={t('preferences.theme')}
          value={theme}
          onChange={(value) => setTheme(value as Theme)}
          options={THEMES.map((value) => {
            const Icon = THEME_ICONS[value];
            return {
              value,
              label: t(`preferences.${value}`),
              icon: <Icon className="size-4" aria-hidden="true" />,
            };
          })}
        />
        <Divider />
        <Choices
          label={t('preferences.language')}
          value={language}
          onChange={(value) => void setLanguage(value as Language)}
          options={LANGUAGES.map((value) => ({ value, label: LANGUAGE_NAMES[value] }))}
        />
        <Divider />
        <Menu.Item className={ITEM} onSelect={() => void logout()}>
          <LogOut className="size-4" aria-hidden="true" />
          {t('account.logout')}
        </Menu.Item>
      </Menu.Content>
    </Menu.Root>
  );
}

function Divider() {
  return <Menu.Separator className="mx-2 my-1.5 h-px bg-line" />;
}

interface ChoicesProps {
  label: string;
  value: string;
  onChange: (value: string) => void;
  options: readonly { value: string; label: string; icon?: ReactNode }[];
}

function Choices({ label, value, onChange, options }: ChoicesProps) {
  return (
    <Menu.RadioGroup value={value} onValueChange={onChange} aria-label={label}>
      <Menu.Label className="px-2.5 py-1 text-xs text-muted">{label}</Menu.Label>
      {options.map((option) => (
        <Menu.RadioItem
          key={option.value}
          value={option.value}
          className={ITEM}
          // The menu stays open, so that the effect is seen and can be taken back.
          onSelect={(event) => event.preventDefault()}
        >
          {option.icon}
          <span className="flex-1">{option.label}</span>
          <Menu.ItemIndicator>
            <Check className="size-4" aria-hidden="true" />
          </Menu.ItemIndicator>
        </Menu.RadioItem>
      ))}
    </Menu.RadioGroup>
  );
}
