// The state of the whole fleet at one glance: how many assistants, how they are, and the way to each group.
import { Contours } from '@tidepool/shared/ui/contours';
import { StatusDot } from '@tidepool/shared/ui/badge';
import { ErrorState, Skeleton, StaleBar } from '@tidepool/shared/ui/states';
import { Link } from 'wouter';
import { useText } from '../messages';
import { HEALTH_TONES } from '../parts/health';
import { HEALTHS, type Health } from '../records';
import { useFreeInstances, useHealthCounts } from './queries';

const FILLS: Record<Health, string> = {
  healthy: 'bg-success',
  unhealthy: 'bg-danger',
  key_invalid: 'bg-danger/60',
  rate_limited: 'bg-warning',
  unknown: 'bg-control/50',
};

export function Fleet() {
  const { t } = useText();
  const counts = useHealthCounts();
  const free = useFreeInstances();
  return (
    <section
      aria-labelledby="fleet"
      className="relative min-w-0 overflow-hidden rounded-xl border border-line bg-surface p-5 shadow-card sm:p-6"
    >
      <Contours className="pointer-events-none absolute inset-y-0 end-0 h-full w-2/3 text-accent opacity-60 [mask-image:linear-gradient(to_left,#000,transparent)]" />
      <div className="relative">
        <h2 id="fleet" className="text-sm font-medium text-muted">
          {t('overview.fleet')}
        </h2>
        {counts.isError &&
          (counts.data === undefined ? (
            <ErrorState error={counts.error} onRetry={() => void counts.refetch()} />
          ) : (
            <StaleBar
              since={counts.dataUpdatedAt}
              busy={counts.isFetching}
              onRetry={() => void counts.refetch()}
            />
          ))}
        {counts.data ? (
          <Known counts={counts.data} />
        ) : (
          !counts.isError && (
            // As high as what comes in its place.
            <div className="h-19 pt-2">
              <Skeleton lines={2} />
            </div>
          )
        )}
        <ul className="mt-4 flex flex-wrap gap-x-1 gap-y-1">
          {HEALTHS.map((health) => (
            <li key={health}>
              <Link
                href={`/instances?health_status=${health}`}
                className={`flex min-h-8 items-center gap-2 rounded-lg px-2 text-sm hover:bg-sunken ${counts.data?.[health] ? '' : 'text-muted'}`}
              >
                <StatusDot tone={HEALTH_TONES[health]} />
                {t(`health.${health}`)}
                <Count value={counts.data?.[health]} />
              </Link>
            </li>
          ))}
          <li>
            <Link
              href="/instances?assigned=false&pooled=false"
              className="flex min-h-8 items-center gap-2 rounded-lg px-2 text-sm text-muted hover:bg-sunken"
            >
              {t('overview.free')}
              <Count value={free.data} />
            </Link>
          </li>
        </ul>
      </div>
    </section>
  );
}

/** A number, or the place where it will stand. */
function Count({ value }: { value: number | undefined }) {
  const { number } = useText();
  return (
    <span className="min-w-4 font-semibold tabular-nums">
      {value === undefined ? <span aria-hidden="true">·</span> : number(value)}
    </span>
  );
}

function Known({ counts }: { counts: Record<Health, number> }) {
  const { t, number } = useText();
  const total = HEALTHS.reduce((sum, health) => sum + counts[health], 0);
  const ill = counts.unhealthy + counts.key_invalid + counts.rate_limited;
  return (
    <>
      <p className="mt-1 flex flex-wrap items-baseline gap-x-3">
        <Link
          href="/instances"
          className="rounded text-4xl font-semibold tracking-tight tabular-nums hover:text-accent"
        >
          {number(total)}
          <span className="sr-only"> {t('nav.instances')}</span>
        </Link>
        <span className={`text-sm ${ill > 0 ? 'font-medium text-danger' : 'text-muted'}`}>
          {total === 0
            ? t('overview.noInstances')
            : ill > 0
              ? t('overview.ill', { count: number(ill) })
              : counts.unknown === total
                ? t('overview.unchecked')
                : t('overview.allWell')}
        </span>
      </p>
      <div className="mt-5 flex h-3 gap-0.5 overflow-hidden rounded-full bg-sunken" aria-hidden="true">
        {HEALTHS.map(
          (health) =>
            counts[health] > 0 && (
              <span
                key={health}
                className={`${FILLS[health]} min-w-1.5`}
                style={{ flexGrow: counts[health] }}
              />
            ),
        )}
      </div>
    </>
  );
}
