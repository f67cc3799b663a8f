// The states of a query without a card around them: loading, failed, there.
import type { UseQueryResult } from '@tanstack/react-query';
import { ErrorState, Skeleton } from '@tidepool/shared/ui/states';
import type { ReactNode } from 'react';

export function QueryState<Data>({
  query,
  children,
}: {
  query: UseQueryResult<Data>;
  children: (data: Data) => ReactNode;
}) {
  if (query.data !== undefined) return children(query.data);
  if (!query.isError) return <Skeleton />;
  return <ErrorState error={query.error} onRetry={() => void query.refetch()} />;
}
