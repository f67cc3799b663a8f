// Theme and language, as they stand on the profile and (smaller) on the login page.
import { Monitor, Moon, Sun } from 'lucide-react';
import { useI18n } from '../i18n/i18n';
import { LANGUAGE_NAMES, LANGUAGES } from '../i18n/language';
import { setTheme, THEMES, useTheme } from '../theme';
import { Segmented } from '../ui/segmented';

export const THEME_ICONS = { system: Monitor, light: Sun, dark: Moon } as const;

export function ThemeChoice({ compact }: { compact?: boolean }) {
  const { t } = useI18n();
  const options = THEMES.map((value) => {
    const Icon = THEME_ICONS[value];
    return { value, label: t(`preferences.${value}`), icon: <Icon className="size-4" aria-hidden="true" /> };
  });
  return (
    <Segmented
      legend={t('preferences.theme')}
      compact={compact}
      value={useTheme()}
      options={options}
      onChange={setTheme}
    />
  );
}

export function LanguageChoice({ compact }: { compact?: boolean }) {
  const { t, language, setLanguage } = useI18n();
  const options = LANGUAGES.map((value) => ({ value, label: LANGUAGE_NAMES[value] }));
  return (
    <Segmented
      legend={t('preferences.language')}
      compact={compact}
      value={language}
      options={options}
      onChange={(value) => void setLanguage(value)}
    />
  );
}

export function Preferences() {
  return (
    <div className="flex flex-wrap gap-x-10 gap-y-5">
      <ThemeChoice />
      <LanguageChoice />
    </div>
  );
}
