// Keeps a failure while drawing inside its own panel or page: the rest of the app stays usable.
import { Component, type ReactNode } from 'react';

interface Props {
  /** What stands in for the broken part. */
  fallback: (reset: () => void) => ReactNode;
  /** A change of this value is a fresh start, such as another page in the same place. */
  resetOn?: string;
  children: ReactNode;
}

export class ErrorBoundary extends Component<Props, { broken: boolean }> {
  override state = { broken: false };

  static getDerivedStateFromError() {
    return { broken: true };
  }

  override componentDidUpdate(before: Props) {
    if (this.state.broken && before.resetOn !== this.props.resetOn) this.setState({ broken: false });
  }

  override render() {
    return this.state.broken
      ? this.props.fallback(() => this.setState({ broken: false }))
      : this.props.children;
  }
}
