// A small chart of its own: bars (stacked) or lines over equally spaced points. The pointer and the arrow keys walk over
// the points; what stands at the chosen one is written beside it and spoken.
import { useEffect, useId, useRef, useState, type KeyboardEvent, type PointerEvent } from 'react';
import { Marks, type MarkKind } from './marks';
import { columnAt, labelStride, labelWidth, ticks } from './scale';
import { Tip } from './tip';

export interface Point {
  /** What the axis says; the tip says `title`, or the same. */
  label: string;
  title?: string;
}

export interface Series {
  id: string;
  label: string;
  /** One per point; null where nothing is known, which is not zero. */
  values: readonly (number | null)[];
}

export interface ChartProps {
  /** What the chart shows, for screen readers. */
  label: string;
  kind: MarkKind;
  points: readonly Point[];
  /** At most six: more than that nobody can tell apart. */
  series: readonly Series[];
  format: (value: number) => string;
  /** The axis may be shorter than the tip. */
  formatTick?: (value: number) => string;
  /** The axis' end, such as 100 for a percentage; otherwise what the values need. */
  max?: number;
  /** Shown in the tip as the sum of all series. */
  totalLabel?: string;
  height?: number;
}

const TOP = 10;
const BOTTOM = 24;
const LABEL_ROOM = 64;

export function Chart(props: ChartProps) {
  const { label, kind, points, series, format, formatTick = format, height = 220 } = props;
  const frame = useRef<HTMLDivElement>(null);
  const hint = useId();
  const [width, setWidth] = useState(0);
  const [chosen, setChosen] = useState<number | null>(null);
  useEffect(() => {
    const element = frame.current;
    if (element === null) return;
    const observer = new ResizeObserver(() => setWidth(element.clientWidth));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  const steps = ticks(props.max ?? highest(kind, series, points.length));
  const top = steps.at(-1) ?? 1;
  const left = 12 + 6.6 * Math.max(...steps.map((step) => Array.from(formatTick(step)).length));
  const plot = { x: left, y: TOP, width: Math.max(0, width - left - 4), height: height - TOP - BOTTOM };
  const last = points.length - 1;
  const at = chosen === null ? null : Math.min(chosen, last);
  const centre = (index: number) => plot.x + ((index + 0.5) / points.length) * plot.width;
  const y = (value: number) => plot.y + plot.height * (1 - value / top);
  const stride = labelStride(plot.width, points.length, LABEL_ROOM);

  function move(event: PointerEvent<HTMLElement>) {
    const box = event.currentTarget.getBoundingClientRect();
    setChosen(columnAt(event.clientX - box.left - plot.x, plot.width, points.length));
  }

  function walk(event: KeyboardEvent) {
    const from = at ?? last;
    const target = {
      ArrowLeft: from - 1,
      ArrowDown: from - 1,
      ArrowRight: from + 1,
      ArrowUp: from + 1,
      PageUp: from + 7,
      PageDown: from - 7,
      Home: 0,
      End: last,
    }[event.key];
    if (event.key === 'Escape') setChosen(null);
    if (target === undefined) return;
    event.preventDefault();
    setChosen(Math.min(last, Math.max(0, target)));
  }

  if (points.length === 0) return null;
  const spoken = at ?? last;
  return (
    <div
      ref={frame}
      role="slider"
      tabIndex={0}
      aria-label={label}
      aria-describedby={series.length > 1 ? hint : undefined}
      aria-orientation="horizontal"
      aria-valuemin={0}
      aria-valuemax={last}
      aria-valuenow={spoken}
      aria-valuetext={sentence(points[spoken], series, spoken, format)}
      className="relative touch-pan-y rounded-md"
      style={{ height }}
      onPointerMove={move}
      onPointerLeave={() => setChosen(null)}
      onPointerDown={move}
      onFocus={(event) => {
        if (event.currentTarget.matches(':focus-visible')) setChosen((now) => now ?? last);
      }}
      onBlur={() => setChosen(null)}
      onKeyDown={walk}
    >
      {width > 0 && (
        <svg width={width} height={height} className="block" aria-hidden="true" focusable="false">
          {steps.map((step) => (
            <g key={step}>
              <line
                x1={plot.x}
                x2={plot.x + plot.width}
                y1={y(step)}
                y2={y(step)}
                className={step === 0 ? 'stroke-control' : 'stroke-line'}
                strokeDasharray={step === 0 ? undefined : '2 4'}
              />
              <text
                x={plot.x - 8}
                y={y(step)}
                dy="0.32em"
                textAnchor="end"
                className="fill-muted text-[11px] tabular-nums"
              >
                {formatTick(step)}
              </text>
            </g>
          ))}
          {points.map((point, index) =>
            (last - index) % stride === 0 ? (
              <text
                key={index}
                x={Math.min(centre(index), width - labelWidth(point.label) / 2)}
                y={height - 7}
                textAnchor="middle"
                className="fill-muted text-[11px]"
              >
                {point.label}
              </text>
            ) : null,
          )}
          {at !== null && (
            <rect
              x={plot.x + (at / points.length) * plot.width}
              y={plot.y}
              width={plot.width / points.length}
              height={plot.height}
              className="fill-accent-soft"
            />
          )}
          <Marks kind={kind} series={series} count={points.length} plot={plot} y={y} chosen={at} />
        </svg>
      )}
      {at !== null && width > 0 && (
        <Tip
          title={points[at]?.title ?? points[at]?.label ?? ''}
          rows={series.map((one) => ({ label: one.label, value: shown(one.values[at], format) }))}
          total={props.totalLabel && { label: props.totalLabel, value: format(sum(series, at)) }}
          x={centre(at)}
          width={width}
        />
      )}
      {series.length > 1 && (
        <span id={hint} className="sr-only">
          {series.map((one) => one.label).join(', ')}
        </span>
      )}
    </div>
  );
}

/** What the colours mean, for a chart of several series. */
export function Legend({ series }: { series: readonly Pick<Series, 'id' | 'label'>[] }) {
  return (
    <ul className="flex flex-wrap gap-x-4 gap-y-1 text-xs text-muted">
      {series.map((one, index) => (
        <li key={one.id} className="flex items-center gap-1.5">
          <span
            className="size-2.5 rounded-[3px]"
            style={{ background: `var(--series-${index + 1})` }}
            aria-hidden="true"
          />
          {one.label}
        </li>
      ))}
    </ul>
  );
}

function highest(kind: MarkKind, series: readonly Series[], count: number): number {
  const known = series.flatMap((one) => one.values).filter((value) => value !== null);
  if (kind === 'line') return Math.max(0, ...known);
  return Math.max(0, ...Array.from({ length: count }, (_, index) => sum(series, index)));
}

function sum(series: readonly Series[], index: number): number {
  return series.reduce((total, one) => total + (one.values[index] ?? 0), 0);
}

function shown(value: number | null | undefined, format: (value: number) => string): string {
  return value === null || value === undefined ? '–' : format(value);
}

function sentence(
  point: Point | undefined,
  series: readonly Series[],
  index: number,
  format: (value: number) => string,
): string {
  const values = series.map((one) => `${one.label} ${shown(one.values[index], format)}`);
  return `${point?.title ?? point?.label ?? ''}: ${values.join(', ')}`;
}
