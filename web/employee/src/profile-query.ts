// The signed-in employee's profile, shared by the frame and the pages through the query cache.
import { useQuery } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { api } from './api';

export const PROFILE = ['profile'];

export function useProfile() {
  return useQuery({ queryKey: PROFILE, queryFn: () => unwrap(api.GET('/me/profile')) });
}

export type Profile = NonNullable<ReturnType<typeof useProfile>['data']>;
