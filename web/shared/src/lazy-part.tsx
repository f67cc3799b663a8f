// Components whose code is fetched when they are drawn, as React's `lazy`. Where it cannot be fetched they say so in their own
// place, and come by themselves when the network is back.
import { Component, lazy, useState, type ComponentType, type ReactNode } from 'react';
import { Away } from './shell/away';

export type Load<Props = object> = () => Promise<{ default: ComponentType<Props> }>;

/** What stands in for code that cannot be fetched. */
export interface AwayProps {
  /** Tries once more. */
  retry: () => void;
  /** It failed again although the server answers: an update has replaced the file, or the browser keeps the failure. */
  again: boolean;
}

class LoadFailure extends Error {}

export function lazyPart<Props extends object>(
  load: Load<Props>,
  Fallback: ComponentType<Props & AwayProps> = Away,
): (props: Props) => ReactNode {
  let code: ComponentType<Props> | null = null;
  const fetched = () =>
    (code ??= lazy(() =>
      load().catch((cause: unknown) => {
        throw new LoadFailure('code could not be fetched', { cause });
      }),
    ) as unknown as ComponentType<Props>);
  // For React it stays failed: whoever draws it next tries anew. Not earlier: what waits for it is drawn anew itself.
  const forget = () => (code = null);
  return function Part(props: Props) {
    const [tried, setTried] = useState(() => ({ Code: fetched(), times: 0 }));
    const { Code, times } = tried;
    return (
      <Unfetched
        key={times}
        onFailure={forget}
        instead={
          <Fallback
            {...props}
            again={times > 0}
            retry={() => setTried({ Code: fetched(), times: times + 1 })}
          />
        }
      >
        <Code {...props} />
      </Unfetched>
    );
  };
}

interface UnfetchedProps {
  onFailure: () => void;
  instead: ReactNode;
  children: ReactNode;
}

/** What breaks while it is drawn is left to the page. */
class Unfetched extends Component<UnfetchedProps, { error: Error | null }> {
  override state = { error: null as Error | null };

  static getDerivedStateFromError(error: unknown) {
    return { error: error instanceof Error ? error : new Error(String(error)) };
  }

  override componentDidCatch() {
    this.props.onFailure();
  }

  override render() {
    const { error } = this.state;
    if (error === null) return this.props.children;
    if (error instanceof LoadFailure) return this.props.instead;
    throw error;
  }
}
