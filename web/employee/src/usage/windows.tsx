// The four windows: today, this week, this month, all time; each with requests, tokens and cost.
import { staleSince } from '@tidepool/shared/ui/panel';
import { ErrorState, Skeleton, StaleBar } from '@tidepool/shared/ui/states';
import { useSummary } from '../instances-query';
import { useText } from '../messages';
import { compact, usd } from '../money';

const WINDOWS = ['today', 'week', 'month', 'all_time'] as const;

export function Windows() {
  const { t, number, locale } = useText();
  const summary = useSummary();
  const { data } = summary;
  const retry = () => void summary.refetch();
  if (data === undefined && summary.isError) return <ErrorState error={summary.error} onRetry={retry} />;
  return (
    <div>
      {data && (data.stale || summary.isError) && (
        <StaleBar
          since={staleSince(data) ?? summary.dataUpdatedAt}
          busy={summary.isFetching}
          onRetry={retry}
        />
      )}
      <ul className="grid grid-cols-2 gap-3 lg:grid-cols-4">
        {WINDOWS.map((window) => (
          <li key={window} className="rounded-xl border border-line bg-surface p-4 shadow-card">
            <h2 className="text-sm font-medium text-muted">{t(`usage.${window}`)}</h2>
            {data === undefined ? (
              <Skeleton lines={2} />
            ) : (
              <>
                <p className="mt-1 text-2xl font-semibold tracking-tight tabular-nums">
                  {usd(data[window].cost_usd, locale)}
                </p>
                <dl className="mt-2 flex flex-wrap gap-x-3 gap-y-1 text-sm sm:gap-x-5">
                  <Fact name={t('usage.requests')} value={number(data[window].requests)} />
                  <Fact name={t('usage.tokens')} value={number(data[window].total_tokens)} />
                  {data[window].known_input_tokens > 0 && (
                    <Fact name={t('usage.cached')} value={cached(data[window], locale)} />
                  )}
                </dl>
              </>
            )}
          </li>
        ))}
      </ul>
      {data?.former.all_time.requests ? (
        <p className="mt-2 text-sm text-muted">
          {t('usage.former', {
            month: usd(data.former.month.cost_usd, locale),
            all: usd(data.former.all_time.cost_usd, locale),
          })}
        </p>
      ) : null}
    </div>
  );
}

/** What providers had in their caches, of the input of the requests that say so. */
function cached(
  {
    known_input_tokens: known,
    cache_read_tokens: read,
  }: { known_input_tokens: number; cache_read_tokens: number },
  locale: string,
) {
  const share = new Intl.NumberFormat(locale, { style: 'percent' }).format(read / known);
  return `${share} · ${compact(read, locale)} / ${compact(known, locale)}`;
}

function Fact({ name, value }: { name: string; value: string }) {
  return (
    <div>
      <dt className="text-xs text-muted">{name}</dt>
      <dd className="font-medium tabular-nums">{value}</dd>
    </div>
  );
}
