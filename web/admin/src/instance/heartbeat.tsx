// The last 60 checks of an instance as a strip, the newest at the end. The pointer and the arrow keys walk over them; what one of them
// found is written below. Trouble is taller than health, so that nobody needs to tell the colours apart.
import { useQuery } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { exact, RelativeTime } from '@tidepool/shared/i18n/time';
import type { Tone } from '@tidepool/shared/ui/badge';
import { EmptyState } from '@tidepool/shared/ui/states';
import { useState, type KeyboardEvent, type PointerEvent } from 'react';
import { api } from '../api';
import { useFormat } from '../format';
import { useText } from '../messages';
import { HEALTH_TONES, HealthStatus } from '../parts/health';
import { QueryState } from '../parts/query-state';
import { oneOf, type Heartbeat, type InstanceDetail } from '../records';

const PLACES = 60;
const LAYERS = ['ssh', 'service', 'http', 'websocket', 'key', 'none'] as const;
const BARS: Record<Tone, string> = {
  good: 'h-3/5 bg-success',
  warn: 'h-full bg-warning',
  bad: 'h-full bg-danger',
  busy: 'h-3/5 bg-accent',
  none: 'h-3/5 border border-control',
};

export function HeartbeatStrip({ instance }: { instance: InstanceDetail }) {
  const { t } = useText();
  const beats = useQuery({
    queryKey: ['instances', 'heartbeat', instance.id],
    queryFn: () => unwrap(api.GET('/instances/{id}/heartbeat', { params: { path: { id: instance.id } } })),
  });
  return (
    <section>
      <h3 className="mb-3 text-sm font-semibold">{t('beat.title')}</h3>
      <QueryState query={beats}>
        {({ list }) =>
          list.length === 0 ? (
            <EmptyState title={t('beat.none')}>{t('beat.noneText')}</EmptyState>
          ) : (
            <Strip beats={list.slice(-PLACES)} />
          )
        }
      </QueryState>
    </section>
  );
}

function Strip({ beats }: { beats: readonly Heartbeat[] }) {
  const { t, number, locale } = useText();
  const [chosen, setChosen] = useState<number | null>(null);
  const last = beats.length - 1;
  const at = chosen === null ? last : Math.min(chosen, last);
  const beat = beats[at];
  const empty = PLACES - beats.length;
  const good = beats.filter((one) => one.health_status === 'healthy').length;

  function point(event: PointerEvent<HTMLElement>) {
    const box = event.currentTarget.getBoundingClientRect();
    const place = Math.floor(((event.clientX - box.left) / box.width) * PLACES) - empty;
    setChosen(place < 0 ? null : Math.min(last, place));
  }

  function walk(event: KeyboardEvent) {
    const target = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: last }[event.key];
    if (target === undefined) return;
    event.preventDefault();
    setChosen(Math.min(last, Math.max(0, target)));
  }

  return (
    <>
      <div
        role="slider"
        tabIndex={0}
        aria-label={t('beat.title')}
        aria-orientation="horizontal"
        aria-valuemin={1}
        aria-valuemax={beats.length}
        aria-valuenow={at + 1}
        aria-valuetext={
          beat && `${exact(Date.parse(beat.checked_at), locale)}: ${t(`health.${beat.health_status}`)}`
        }
        className="flex h-8 touch-pan-y items-end gap-px rounded-md sm:gap-0.5"
        onPointerMove={point}
        onPointerDown={point}
        onPointerLeave={() => setChosen(null)}
        onBlur={() => setChosen(null)}
        onKeyDown={walk}
      >
        {Array.from({ length: empty }, (_, index) => (
          <span key={index} className="h-1/5 flex-1 rounded-[2px] bg-line" />
        ))}
        {beats.map((one, index) => (
          <span
            key={one.checked_at}
            data-health={one.health_status}
            className={`flex-1 rounded-[2px] ${BARS[HEALTH_TONES[one.health_status]]} ${index === chosen ? 'outline-2 outline-offset-1 outline-accent' : ''}`}
          />
        ))}
      </div>
      <div className="mt-2 flex flex-wrap items-baseline gap-x-4 gap-y-1 text-sm text-muted">
        {beat && <Found beat={beat} />}
        <span className="ms-auto">
          {t('beat.summary', { good: number(good), all: number(beats.length) })}
        </span>
      </div>
    </>
  );
}

/** What one check found, when, and by which of its questions. */
function Found({ beat }: { beat: Heartbeat }) {
  const { t } = useText();
  const format = useFormat();
  const layer = oneOf(beat.layer, LAYERS);
  const parts = [
    layer && layer !== 'none' ? t(`beat.layer.${layer}`) : null,
    typeof beat.latency_ms === 'number' ? format.duration(beat.latency_ms) : null,
  ].filter((part) => part !== null);
  return (
    <span className="flex flex-wrap items-baseline gap-x-2">
      <span className="text-ink">
        <HealthStatus health={beat.health_status} />
      </span>
      <RelativeTime at={beat.checked_at} />
      {parts.length > 0 && <span>{parts.join(' · ')}</span>}
    </span>
  );
}
