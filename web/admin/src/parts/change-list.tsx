// Places of a document that differ: each with both values, of which one may be nothing.
import { useText } from '../messages';
import type { ConfigChange } from '../records';
import { DiffView } from './diff-view';

interface ChangeListProps {
  changes: readonly ConfigChange[];
  /** What the two values are called. */
  is: string;
  should: string;
}

export function ChangeList({ changes, is, should }: ChangeListProps) {
  return (
    <ul className="divide-y divide-line rounded-lg border border-line text-sm">
      {changes.map((change) => (
        <li key={change.path} className="space-y-1 px-3 py-2">
          <code className="block font-mono text-xs font-medium wrap-anywhere">{change.path}</code>
          <Values before={change.is} after={change.should} is={is} should={should} />
        </li>
      ))}
    </ul>
  );
}

interface ValuesProps {
  before: unknown;
  after: unknown;
  is: string;
  should: string;
}

function Values({ before, after, is, should }: ValuesProps) {
  const isLong = [before, after].every((value) => typeof value === 'object' && value !== null);
  if (isLong)
    return <DiffView before={JSON.stringify(before, null, 2)} after={JSON.stringify(after, null, 2)} />;
  return (
    <dl className="grid grid-cols-[auto_minmax(0,1fr)] gap-x-3 gap-y-0.5 text-xs">
      <dt className="text-muted">{is}</dt>
      <Value value={before} look="text-danger" />
      <dt className="text-muted">{should}</dt>
      <Value value={after} look="text-success" />
    </dl>
  );
}

function Value({ value, look }: { value: unknown; look: string }) {
  const { t } = useText();
  return value === null || value === undefined ? (
    <dd className="text-muted">{t('config.nothing')}</dd>
  ) : (
    <dd className={`font-mono wrap-anywhere whitespace-pre-wrap ${look}`}>
      {JSON.stringify(value, null, 2)}
    </dd>
  );
}
