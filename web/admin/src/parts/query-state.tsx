// The states of a query without a card around them: loading, failed, there, and there although the refresh failed.
import type { UseQueryResult } from '@tanstack/react-query';
import { ErrorState, Skeleton, StaleBar } from '@tidepool/shared/ui/states';
import type { ReactNode } from 'react';

export function QueryState<Data>({
  query,
  children,
}: {
  query: UseQueryResult<Data>;
  children: (data: Data) => ReactNode;
}) {
  const retry = () => void query.refetch();
  if (query.data === undefined)
    return query.isError ? <ErrorState error={query.error} onRetry={retry} /> : <Skeleton />;
  return (
    <>
      {query.isError && <StaleBar since={query.dataUpdatedAt} busy={query.isFetching} onRetry={retry} />}
      {children(query.data)}
    </>
  );
}
