// tidepool's mark: a moon over two waves in a round pool. It takes the colour of the text around it.
export function Mark({ className = 'size-7' }: { className?: string }) {
  return (
    <svg viewBox="0 0 32 32" className={className} fill="none" aria-hidden="true" focusable="false">
      <path
        d="M16 2.5c8.2 0 13.5 5.2 13.5 13.2 0 8.4-5.6 13.8-13.4 13.8C8 29.5 2.5 24 2.5 16.2 2.5 8 7.9 2.5 16 2.5Z"
        fill="currentColor"
        opacity="0.14"
      />
      <circle cx="20.5" cy="9.75" r="3.25" fill="currentColor" />
      <path
        d="M5 17.5c2.75-2.6 5.5-2.6 8.25 0s5.5 2.6 8.25 0c1.9-1.8 3.7-2.35 5.5-1.65M8 23.25c2.3-2.1 4.6-2.1 6.9 0s4.6 2.1 6.9 0c.9-.82 1.7-1.32 2.6-1.52"
        stroke="currentColor"
        strokeWidth="2.4"
        strokeLinecap="round"
      />
    </svg>
  );
}

/** Mark and name; `tag` says which of the two apps this is. */
export function Brand({ tag }: { tag?: string }) {
  return (
    <span className="inline-flex items-center gap-2.5 whitespace-nowrap">
      <Mark className="size-7 shrink-0 text-accent" />
      <span className="text-[1.0625rem] font-semibold tracking-tight">tidepool</span>
      {tag !== undefined && (
        <span className="rounded-md bg-accent-soft px-1.5 py-0.5 text-xs font-medium text-accent-strong">
          {tag}
        </span>
      )}
    </span>
  );
}
