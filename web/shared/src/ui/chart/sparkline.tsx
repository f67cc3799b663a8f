// A line in passing, as in a table's row: no axis, the text beside it says the value.
interface SparklineProps {
  label: string;
  values: readonly (number | null)[];
  max?: number;
  className?: string;
}

const WIDTH = 96;
const HEIGHT = 24;

export function Sparkline({ label, values, max, className = '' }: SparklineProps) {
  const top = max ?? Math.max(1e-9, ...values.map((value) => value ?? 0));
  const x = (index: number) => (values.length < 2 ? 0 : (index / (values.length - 1)) * (WIDTH - 2) + 1);
  const y = (value: number) => HEIGHT - 2 - (value / top) * (HEIGHT - 4);
  const path = values
    .map((value, index) => {
      if (value === null) return '';
      const pen = (values[index - 1] ?? null) === null ? 'M' : 'L';
      return `${pen}${x(index).toFixed(1)} ${y(value).toFixed(1)}`;
    })
    .join('');
  return (
    <svg
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      role="img"
      aria-label={label}
      className={`h-6 w-24 ${className}`}
      preserveAspectRatio="none"
    >
      <path
        d={path}
        fill="none"
        stroke="var(--series-1)"
        strokeWidth="1.5"
        strokeLinejoin="round"
        vectorEffect="non-scaling-stroke"
      />
    </svg>
  );
}
