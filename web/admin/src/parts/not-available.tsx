// What stands where the running server lacks a feature: neither empty nor failed.
import type { UseQueryResult } from '@tanstack/react-query';
import { EmptyState, ErrorState, Skeleton } from '@tidepool/shared/ui/states';
import type { ReactNode } from 'react';
import { useText } from '../messages';
import { notAvailable } from '../pending-api';

export function NotAvailable() {
  const { t } = useText();
  return <EmptyState title={t('missing.title')}>{t('missing.text')}</EmptyState>;
}

/** The states of a query whose endpoint may not exist, without a card around them. */
export function Maybe<Data>({
  query,
  children,
}: {
  query: UseQueryResult<Data>;
  children: (data: Data) => ReactNode;
}) {
  if (query.data !== undefined) return children(query.data);
  if (!query.isError) return <Skeleton />;
  if (notAvailable(query.error)) return <NotAvailable />;
  return <ErrorState error={query.error} onRetry={() => void query.refetch()} />;
}
