// A part of a tab with its heading and, beside that, what can be done about it.
import type { ReactNode } from 'react';

interface SectionProps {
  title: string;
  actions?: ReactNode;
  children: ReactNode;
}

export function Section({ title, actions, children }: SectionProps) {
  return (
    <section>
      <div className="mb-3 flex flex-wrap items-center gap-2">
        <h3 className="flex-1 basis-24 text-sm font-semibold">{title}</h3>
        {actions}
      </div>
      {children}
    </section>
  );
}
