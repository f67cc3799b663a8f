// Claims an instance, or exchanges one, then goes to the chat page, where the setting up is shown.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useLocation } from 'wouter';
import { INSTANCES } from '../instances-query';
import { PROFILE } from '../profile-query';
import { setSetup } from './setups';

export const PROFESSIONS = ['professions'];

/** `replaced` is the instance that is given back for the new one. */
export function useClaim<Asked>(
  claim: (asked: Asked) => Promise<{ instance: { id: string }; task_id: string }>,
  replaced?: string,
) {
  const queries = useQueryClient();
  const [, navigate] = useLocation();
  return useMutation({
    mutationFn: claim,
    onSuccess: async ({ instance, task_id }) => {
      setSetup(instance.id, task_id);
      await queries.invalidateQueries({ queryKey: INSTANCES });
      navigate(`/?instance=${encodeURIComponent(instance.id)}`);
      if (replaced !== undefined) setSetup(replaced, null);
    },
    onSettled: () => {
      for (const queryKey of [INSTANCES, PROFESSIONS, PROFILE]) void queries.invalidateQueries({ queryKey });
    },
  });
}
