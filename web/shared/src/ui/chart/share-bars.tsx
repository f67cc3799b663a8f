// Parts of a whole, each with its value and a bar as long as its share of the greatest.
import type { ReactNode } from 'react';

interface ShareBarsProps {
  rows: readonly { id: string; label: ReactNode; value: number; text: string; note?: string }[];
}

export function ShareBars({ rows }: ShareBarsProps) {
  const greatest = Math.max(1e-9, ...rows.map((row) => row.value));
  return (
    <ul className="space-y-3">
      {rows.map((row) => (
        <li key={row.id}>
          <div className="flex flex-wrap items-baseline gap-x-3 text-sm">
            <span className="min-w-0 wrap-anywhere">{row.label}</span>
            <span className="ms-auto flex items-baseline gap-3 tabular-nums">
              {row.note && <span className="text-xs text-muted">{row.note}</span>}
              <span className="font-medium">{row.text}</span>
            </span>
          </div>
          <div className="mt-1 h-1.5 rounded-full bg-sunken" aria-hidden="true">
            <div
              className="h-full rounded-full bg-accent"
              style={{ width: `${Math.max(1, (row.value / greatest) * 100)}%` }}
            />
          </div>
        </li>
      ))}
    </ul>
  );
}
