// One page inside the shell: its title in the tab and as the heading. After a navigation the heading takes the focus,
// so that a screen reader announces where one is and the keyboard goes on from there.
import { useEffect, useRef, type ReactNode } from 'react';
import { ErrorBoundary } from '../ui/error-boundary';
import { PageFailure } from './page-failure';

let opened = false;

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
  children: ReactNode;
}

export function Page({ title, heading = title, lead, children }: PageProps) {
  const headline = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    // The document's first page keeps the browser's own start of the focus.
    if (opened) headline.current?.focus();
    opened = true;
  }, []);
  return (
    <div className="mx-auto w-full max-w-5xl px-4 py-7 sm:px-8 sm:py-10">
      <PageTitle title={title} />
      <h1 ref={headline} tabIndex={-1} className="text-2xl font-semibold sm:text-[1.75rem]">
        {heading}
      </h1>
      {lead && <p className="mt-1.5 max-w-2xl text-muted">{lead}</p>}
      <div className="mt-7">
        <ErrorBoundary fallback={() => <PageFailure />}>{children}</ErrorBoundary>
      </div>
    </div>
  );
}
