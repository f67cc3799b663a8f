// What only some roles may read: the others are told so instead of being shown a failed request.
import type { Permission } from '@tidepool/shared/api/registry.gen';
import { Page } from '@tidepool/shared/shell/page';
import { Notice } from '@tidepool/shared/ui/notice';
import { ErrorState, Skeleton } from '@tidepool/shared/ui/states';
import type { ReactNode } from 'react';
import { useLocation } from 'wouter';
import { useMe, useRights, useRoleName } from '../me';
import { useText } from '../messages';
import { usePages } from '../navigation';

interface AllowedProps {
  /** Whoever has this permission sees the children. */
  to: Permission;
  children: ReactNode;
}

export function Allowed({ to, children }: AllowedProps) {
  const { t } = useText();
  const me = useMe();
  const { may } = useRights();
  const roleName = useRoleName();
  if (may(to)) return children;
  if (me.data) return <Notice tone="info">{t('forbidden.text', { role: roleName(me.data.role) })}</Notice>;
  return me.isError ? <ErrorState error={me.error} onRetry={() => void me.refetch()} /> : <Skeleton />;
}

/** The page at the current address; who may not read it sees its title and the reason. */
export function ReadablePage({ children }: { children: ReactNode }) {
  const [location] = useLocation();
  const { may } = useRights();
  const page = usePages().find(({ href }) => location === href || location.startsWith(`${href}/`));
  if (page?.needs === undefined || may(page.needs)) return children;
  return (
    <Page wide title={page.label}>
      <Allowed to={page.needs}>{null}</Allowed>
    </Page>
  );
}
