// The little card beside the chosen point of a chart. The chart itself speaks the same text, so it is hidden from
// screen readers.
interface TipProps {
  title: string;
  rows: readonly { label: string; value: string }[];
  total?: { label: string; value: string } | '';
  x: number;
  width: number;
}

export function Tip({ title, rows, total, x, width }: TipProps) {
  const side = x > width / 2 ? { right: width - x + 14 } : { left: x + 14 };
  return (
    <div
      aria-hidden="true"
      style={side}
      className="pointer-events-none absolute top-1 z-10 max-w-[60%] min-w-32 rounded-lg border border-line bg-surface px-3 py-2 text-xs shadow-high"
    >
      <p className="mb-1 font-medium">{title}</p>
      {rows.map((row, index) => (
        <p key={row.label} className="flex items-center gap-1.5">
          {rows.length > 1 && (
            <span
              className="size-2 shrink-0 rounded-[2px]"
              style={{ background: `var(--series-${index + 1})` }}
            />
          )}
          <span className="min-w-0 flex-1 text-muted">{row.label}</span>
          <span className="ps-3 font-medium tabular-nums">{row.value}</span>
        </p>
      ))}
      {total && (
        <p className="mt-1 flex justify-between border-t border-line pt-1">
          <span className="text-muted">{total.label}</span>
          <span className="ps-3 font-medium tabular-nums">{total.value}</span>
        </p>
      )}
    </div>
  );
}
