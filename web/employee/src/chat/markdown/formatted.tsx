// A text with its format, whose code is fetched with the first one: until then, and where it cannot be fetched, as it was written.
import { lazyPart, type AwayProps } from '@tidepool/shared/lazy-part';
import { Nothing } from '@tidepool/shared/shell/away';
import { Suspense } from 'react';

interface FormattedProps {
  text: string;
  growing?: boolean;
}

const Markdown = lazyPart(() => import('./markdown'), UnformattedYet);

export function Formatted(props: FormattedProps) {
  return (
    <Suspense fallback={<Unformatted {...props} />}>
      <Markdown {...props} />
    </Suspense>
  );
}

function Unformatted({ text }: FormattedProps) {
  return <p className="whitespace-pre-wrap">{text}</p>;
}

function UnformattedYet({ retry, again, ...props }: FormattedProps & AwayProps) {
  return (
    <>
      <Unformatted {...props} />
      <Nothing retry={retry} again={again} />
    </>
  );
}
