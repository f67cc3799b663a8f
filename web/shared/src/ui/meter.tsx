// A level within a range, such as a quota. Colour only repeats what the text beside it says.
interface MeterProps {
  label: string;
  value: number;
  max: number;
  text: string;
}

export function Meter({ label, value, max, text }: MeterProps) {
  const share = max > 0 ? Math.min(1, Math.max(0, value / max)) : 0;
  const colour = share >= 1 ? 'bg-danger' : share >= 0.8 ? 'bg-warning' : 'bg-accent';
  return (
    <div
      role="meter"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={max}
      aria-valuenow={Math.min(value, max)}
      aria-valuetext={text}
      className="h-2.5 overflow-hidden rounded-full border border-line bg-sunken"
    >
      <div className={`h-full rounded-full ${colour}`} style={{ width: `${share * 100}%` }} />
    </div>
  );
}
