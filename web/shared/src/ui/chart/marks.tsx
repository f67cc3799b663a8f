// What a chart draws for its series: stacked bars, or lines with a soft ground under a single one.
import type { Series } from './chart';

export type MarkKind = 'bar' | 'line';

interface MarksProps {
  kind: MarkKind;
  series: readonly Series[];
  count: number;
  plot: { x: number; y: number; width: number; height: number };
  y: (value: number) => number;
  chosen: number | null;
}

const colour = (index: number) => `var(--series-${index + 1})`;

export function Marks(props: MarksProps) {
  return props.kind === 'bar' ? <Bars {...props} /> : <Lines {...props} />;
}

function Bars({ series, count, plot, y, chosen }: MarksProps) {
  const column = plot.width / count;
  const gap = column > 6 ? Math.min(6, column * 0.22) : 0.5;
  const width = Math.max(1, Math.min(40, column - gap));
  return Array.from({ length: count }, (_, index) => {
    let below = 0;
    const left = plot.x + (index + 0.5) * column - width / 2;
    return (
      <g key={index} opacity={chosen === null || chosen === index ? 1 : 0.55}>
        {series.map((one, order) => {
          const value = one.values[index] ?? 0;
          if (value <= 0) return null;
          const bottom = y(below);
          below += value;
          const top = y(below);
          const radius = Math.min(3, width / 2);
          return (
            <rect
              key={one.id}
              x={left}
              y={top}
              width={width}
              // A hair of ground between stacked parts tells them apart without their colours.
              height={Math.max(1.5, bottom - top - (order === 0 ? 0 : 1))}
              rx={radius}
              fill={colour(order)}
            />
          );
        })}
      </g>
    );
  });
}

function Lines({ series, count, plot, y, chosen }: MarksProps) {
  const x = (index: number) => plot.x + ((index + 0.5) / count) * plot.width;
  return series.map((one, order) => (
    <g key={one.id}>
      {runs(one.values).map((run) => {
        const line = run.map(({ index, value }) => `${x(index).toFixed(1)} ${y(value).toFixed(1)}`).join('L');
        const first = run[0];
        const final = run.at(-1);
        return (
          <g key={first?.index}>
            {series.length === 1 && first && final && (
              <path
                d={`M${x(first.index)} ${y(0)}L${line}L${x(final.index)} ${y(0)}Z`}
                fill={colour(order)}
                opacity="0.12"
              />
            )}
            {run.length === 1 && first ? (
              <circle cx={x(first.index)} cy={y(first.value)} r="2" fill={colour(order)} />
            ) : (
              <path
                d={`M${line}`}
                fill="none"
                stroke={colour(order)}
                strokeWidth="2"
                strokeLinejoin="round"
                strokeLinecap="round"
              />
            )}
          </g>
        );
      })}
      {chosen !== null && typeof one.values[chosen] === 'number' && (
        <circle
          cx={x(chosen)}
          cy={y(one.values[chosen])}
          r="4"
          fill={colour(order)}
          className="stroke-surface"
          strokeWidth="2"
        />
      )}
    </g>
  ));
}

/** The unbroken stretches: a line never bridges what is not known. */
function runs(values: readonly (number | null)[]): { index: number; value: number }[][] {
  const found: { index: number; value: number }[][] = [];
  let open: { index: number; value: number }[] | null = null;
  values.forEach((value, index) => {
    if (value === null) {
      open = null;
      return;
    }
    if (open === null) found.push((open = []));
    open.push({ index, value });
  });
  return found;
}
