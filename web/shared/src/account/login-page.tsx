// The login page of both apps: the form on a quiet ground, a picture beside it where there is room.
import { Redirect, useSearchParams } from 'wouter';
import { useSession } from '../app';
import { useI18n } from '../i18n/i18n';
import { safeNext } from '../session/return-to';
import { PageTitle } from '../shell/page';
import { VersionTag } from '../shell/version';
import { Contours } from '../ui/contours';
import { Brand } from '../ui/mark';
import { LoginForm } from './login-form';
import { LanguageChoice, ThemeChoice } from './preferences';

interface LoginPageProps {
  tag?: string;
  /** One line that says what a person signs in to. */
  lead: string;
  /** The sentence on the picture. */
  motto: string;
}

export function LoginPage({ tag, lead, motto }: LoginPageProps) {
  const { t } = useI18n();
  const { token } = useSession();
  const [search] = useSearchParams();
  const next = safeNext(search.get('next'));
  if (token !== null) return <Redirect to={next} replace />;

  return (
    <div className="grid min-h-dvh lg:grid-cols-[minmax(26rem,5fr)_6fr]">
      <PageTitle title={t('login.title')} />
      <div className="flex flex-col gap-8 px-5 py-6 sm:px-10">
        <header className="flex items-center justify-between gap-4">
          <Brand tag={tag} />
          <ThemeChoice compact />
        </header>
        <main className="mx-auto w-full max-w-sm flex-1 py-4 sm:pt-[10vh]">
          <h1 className="text-2xl font-semibold">{t('login.title')}</h1>
          <p className="mt-1 mb-7 text-muted">{lead}</p>
          <LoginForm next={next} />
        </main>
        <footer className="flex flex-wrap items-center justify-between gap-3 text-sm">
          <LanguageChoice compact />
          <VersionTag />
        </footer>
      </div>
      <div className="relative hidden overflow-hidden bg-deep lg:block" aria-hidden="true">
        <Contours className="absolute inset-0 size-full text-deep-line" />
        <div className="absolute inset-x-0 bottom-0 bg-linear-to-t from-deep via-deep/80 to-transparent p-12 pt-32">
          <p className="max-w-md text-2xl leading-snug font-medium text-balance text-on-deep">{motto}</p>
        </div>
      </div>
    </div>
  );
}
