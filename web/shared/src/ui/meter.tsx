// A level within a range, such as a quota. Colour only repeats what the text beside it says.
interface MeterProps {
  label: string;
  value: number;
  max: number;
  text: string;
  /** The level is what is left: it is low that warns. */
  left?: boolean;
}

export function Meter({ label, value, max, text, left = false }: MeterProps) {
  const share = max > 0 ? Math.min(1, Math.max(0, value / max)) : 0;
  const used = left ? 1 - share : share;
  const colour = used >= 1 ? 'bg-danger' : used >= 0.8 ? 'bg-warning' : 'bg-accent';
  return (
    <div
      role="meter"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={max}
      aria-valuenow={Math.min(Math.max(value, 0), max)}
      aria-valuetext={text}
      className="h-2.5 overflow-hidden rounded-full border border-line bg-sunken"
    >
      <div className={`h-full rounded-full ${colour}`} style={{ width: `${share * 100}%` }} />
    </div>
  );
}
