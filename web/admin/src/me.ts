// The signed-in administrator, shared by the frame and the pages through the query cache.
import { useQuery } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { api } from './api';
import { useText } from './messages';

export function useMe() {
  return useQuery({ queryKey: ['me'], queryFn: () => unwrap(api.GET('/auth/me')) });
}

/** A role's name; one that this version does not know is shown as the server names it. */
export function useRoleName() {
  const { t } = useText();
  return (role: string) => (role === 'super_admin' || role === 'admin' ? t(`role.${role}`) : role);
}

/** Whether the signed-in administrator may do what only super administrators may; unknown counts as no. */
export function useIsSuper(): boolean {
  return useMe().data?.role === 'super_admin';
}
