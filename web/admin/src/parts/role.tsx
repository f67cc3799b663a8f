// A role as a badge with its own sign, and the four roles with what each may do.
import { Badge } from '@tidepool/shared/ui/badge';
import { Facts } from '@tidepool/shared/ui/panel';
import { Eye, Server, ShieldCheck, UserRound } from 'lucide-react';
import type { ReactNode } from 'react';
import { useRoleName } from '../me';
import { useText } from '../messages';
import { oneOf, ROLES, type Role } from '../records';

const SIGNS: Record<Role, ReactNode> = {
  super_admin: <ShieldCheck className="size-3.5" aria-hidden="true" />,
  admin: <UserRound className="size-3.5" aria-hidden="true" />,
  operator: <Server className="size-3.5" aria-hidden="true" />,
  auditor: <Eye className="size-3.5" aria-hidden="true" />,
};

/** A role that this version does not know has no sign. */
export function RoleBadge({ role }: { role: string }) {
  const roleName = useRoleName();
  const known = oneOf(role, ROLES);
  return (
    <Badge tone={role === 'super_admin' ? 'busy' : 'none'}>
      {known && SIGNS[known]}
      {roleName(role)}
    </Badge>
  );
}

export function RoleList() {
  const { t } = useText();
  return <Facts rows={ROLES.map((role) => ({ name: t(`role.${role}`), value: t(`role.${role}.text`) }))} />;
}
