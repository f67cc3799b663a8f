// The signed-in administrator and what their role may do, shared by the frame and the pages through the query cache.
import { useQuery } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import type { Permission } from '@tidepool/shared/api/registry.gen';
import { api } from './api';
import { useText } from './messages';
import { oneOf, ROLES } from './records';

/** Most components ask for it, so that a dialog that opens does not ask the server again. `live.tsx` does, now and then. */
const FRESH_MS = 60_000;

export function useMe() {
  return useQuery({
    queryKey: ['me'],
    queryFn: () => unwrap(api.GET('/auth/me')),
    staleTime: FRESH_MS,
  });
}

/** A role's name; one that this version does not know is shown as the server names it. */
export function useRoleName() {
  const { t } = useText();
  return (role: string) => {
    const known = oneOf(role, ROLES);
    return known === undefined ? role : t(`role.${known}`);
  };
}

/** What the signed-in administrator may do, where a component asks about several permissions. */
export interface Rights {
  /** False until it is known: what is asked of the server or offered as a button waits for this. */
  may: (permission: Permission) => boolean;
  /** Also false until it is known: what is left out without a permission keeps its place until then, so that nothing jumps. */
  mayNot: (permission: Permission) => boolean;
}

export function useRights(): Rights {
  const permissions = useMe().data?.permissions;
  return {
    may: (permission) => permissions?.includes(permission) === true,
    mayNot: (permission) => permissions?.includes(permission) === false,
  };
}

/** Whether the signed-in administrator may do something; unknown counts as no. */
export function useMay(permission: Permission): boolean {
  return useRights().may(permission);
}
