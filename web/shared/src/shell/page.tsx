// One page inside the shell: its title in the tab and as the heading. After a navigation the heading takes the focus,
// so that a screen reader announces where one is and the keyboard goes on from there.
import { createContext, useContext, useEffect, useRef, type ReactNode } from 'react';
import { ErrorBoundary } from '../ui/error-boundary';
import { PageFailure } from './page-failure';

/** Whether one has moved since the frame stands; the shell tells. */
export const Moved = createContext(false);

export function PageTitle({ title }: { title: string }) {
  useEffect(() => {
    document.title = `${title} · tidepool`;
  }, [title]);
  return null;
}

interface PageProps {
  /** The tab's title; also the heading unless that says more. */
  title: string;
  heading?: string;
  lead?: ReactNode;
  /** Beside the heading: what can be done on this page. */
  action?: ReactNode;
  /** Takes the whole width, for tables. */
  wide?: boolean;
  children: ReactNode;
}

export function Page({ title, heading = title, lead, action, wide = false, children }: PageProps) {
  const headline = useRef<HTMLHeadingElement>(null);
  // The first address keeps the browser's own start of the focus, whether or not its page was ever there.
  const arrived = useRef(useContext(Moved));
  useEffect(() => {
    if (arrived.current) headline.current?.focus();
  }, []);
  return (
    <div
      className={`mx-auto w-full ${wide ? 'max-w-[110rem] px-4 py-6 sm:px-6 sm:py-7' : 'max-w-5xl px-4 py-7 sm:px-8 sm:py-10'}`}
    >
      <PageTitle title={title} />
      <div className="flex flex-wrap items-start gap-x-4 gap-y-3">
        <div className="min-w-0 flex-1 basis-60">
          <h1
            ref={headline}
            tabIndex={-1}
            className={`font-semibold ${wide ? 'text-xl sm:text-2xl' : 'text-2xl sm:text-[1.75rem]'}`}
          >
            {heading}
          </h1>
          {lead && <p className="mt-1.5 max-w-2xl text-muted">{lead}</p>}
        </div>
        {action && <div className="flex flex-wrap items-center gap-2">{action}</div>}
      </div>
      <div className={wide ? 'mt-5' : 'mt-7'}>
        <ErrorBoundary fallback={() => <PageFailure />}>{children}</ErrorBoundary>
      </div>
    </div>
  );
}
