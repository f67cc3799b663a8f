// The app's own routes of the second factor, fetched with the page that needs them.
import { useMutation } from '@tanstack/react-query';
import { useApp } from '../../app';
import type { SecondFactorApi } from './api';

/** A request of the second factor, as a mutation. */
export function useRequest<Fields, Answer>(
  request: (api: SecondFactorApi, fields: Fields) => Promise<Answer>,
  options: { onSuccess?: (answer: Answer) => void; onError?: (error: unknown) => void } = {},
) {
  const { account } = useApp();
  return useMutation({
    mutationFn: async (fields: Fields) => request(await account.secondFactor(), fields),
    ...options,
  });
}
