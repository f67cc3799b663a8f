// What may be wider than the thread scrolls inside itself, by keyboard too, and shows at its edges where it goes on: phones
// and many desktops draw no scroll bar before one scrolls.
import { useLayoutEffect, useRef, useState, type ReactNode } from 'react';

const EDGE = 'pointer-events-none absolute inset-y-0 w-8 from-transparent to-ink/20';

interface ScrollerProps {
  label: string;
  /** A table is a landmark to go to, a formula is part of its text. */
  role: 'region' | 'group';
  children: ReactNode;
}

export function Scroller({ label, role, children }: ScrollerProps) {
  // A formula may stand inside a paragraph, which has no room for a div.
  const Box = role === 'group' ? 'span' : 'div';
  const box = useRef<HTMLDivElement & HTMLSpanElement>(null);
  const [more, setMore] = useState({ before: false, after: false });
  useLayoutEffect(() => {
    const element = box.current;
    if (element === null) return;
    const measure = () => {
      // Browsers round widths and positions differently.
      const before = element.scrollLeft > 1;
      const after = element.scrollLeft + element.clientWidth < element.scrollWidth - 1;
      setMore((last) => (last.before === before && last.after === after ? last : { before, after }));
    };
    measure();
    element.addEventListener('scroll', measure, { passive: true });
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    if (element.firstElementChild !== null) observer.observe(element.firstElementChild);
    return () => {
      element.removeEventListener('scroll', measure);
      observer.disconnect();
    };
    // Its width is that of what is drawn now.
  }, [children]);
  return (
    <Box className="relative block">
      <Box
        ref={box}
        role={role}
        aria-label={label}
        tabIndex={role === 'region' || more.before || more.after ? 0 : undefined}
        className="block overflow-x-auto overflow-y-hidden"
      >
        {children}
      </Box>
      {more.before && (
        <span aria-hidden="true" data-edge="before" className={`${EDGE} start-0 bg-linear-to-l`} />
      )}
      {more.after && <span aria-hidden="true" data-edge="after" className={`${EDGE} end-0 bg-linear-to-r`} />}
    </Box>
  );
}
