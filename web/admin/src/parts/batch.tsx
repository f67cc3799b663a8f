// One action on many records: first a preview of what is affected and what is left out with the reason, then a result
// for each. An answer that never came is "unknown", not "failed".
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { errorText } from '@tidepool/shared/api/error-text';
import { Button } from '@tidepool/shared/ui/button';
import { Badge } from '@tidepool/shared/ui/badge';
import { Dialog } from '@tidepool/shared/ui/dialog';
import { outcomeOf, type Outcome } from '@tidepool/shared/ui/outcome';
import { CircleAlert, CircleCheck, CircleHelp } from 'lucide-react';
import { useState, type ReactNode } from 'react';
import { useText } from '../messages';

export interface BatchItem {
  id: string;
  label: string;
  /** What will happen to it, in a word or two. */
  effect?: string;
  /** Why it is left out. */
  skip?: string;
}

/** One request for each, or one for up to `most` of them, which succeed or fail together. */
type Run =
  | ((item: BatchItem) => Promise<unknown>)
  | { most: number; together: (items: readonly BatchItem[]) => Promise<unknown> };

interface Result {
  outcome: Outcome;
  text: string;
}

interface BatchProps {
  title: string;
  lead: string;
  confirm: string;
  danger?: boolean;
  items: readonly BatchItem[];
  /** Choices that the action needs, above the preview. */
  children?: ReactNode;
  /** Nothing can start before it is true. */
  ready?: boolean;
  run: Run;
  /** Each becomes a task, so that its answer says "queued" and not "done". */
  queues?: boolean;
  /** Query key roots that the action changes. */
  changes: readonly string[];
  onClose: () => void;
}

const AT_ONCE = 4;

function chunks<Item>(items: readonly Item[], most: number): (readonly Item[])[] {
  return Array.from({ length: Math.ceil(items.length / most) }, (_, at) =>
    items.slice(at * most, (at + 1) * most),
  );
}

export function Batch(props: BatchProps) {
  const {
    title,
    lead,
    confirm,
    danger = false,
    items: offered,
    children,
    ready = true,
    run,
    queues = false,
    changes,
    onClose,
  } = props;
  const i18n = useText();
  const { t, number } = i18n;
  const client = useQueryClient();
  const [results, setResults] = useState<ReadonlyMap<string, Result>>(new Map());
  // What is shown and done is what was previewed, though the records change while it runs.
  const [begun, setBegun] = useState<readonly BatchItem[] | null>(null);
  const items = begun ?? offered;
  const affected = items.filter((item) => item.skip === undefined);
  const action = useMutation({
    mutationFn: async () => {
      setBegun(offered);
      const most = typeof run === 'function' ? 1 : run.most;
      const send =
        typeof run === 'function' ? ([item]: readonly BatchItem[]) => item && run(item) : run.together;
      const queue = chunks(affected, most);
      const worker = async () => {
        for (let items = queue.shift(); items; items = queue.shift()) {
          const ids = items.map(({ id }) => id);
          let result: Result;
          try {
            await send(items);
            result = { outcome: 'done', text: '' };
          } catch (error) {
            result = { outcome: outcomeOf(error), text: errorText(error, i18n) };
          }
          setResults((before) => new Map([...before, ...ids.map((id) => [id, result] as const)]));
        }
      };
      await Promise.all(Array.from({ length: AT_ONCE }, worker));
      for (const root of changes) void client.invalidateQueries({ queryKey: [root] });
    },
  });
  const count = (outcome: Outcome) => [...results.values()].filter((one) => one.outcome === outcome).length;
  const started = !action.isIdle;
  return (
    <Dialog
      open
      onClose={onClose}
      title={title}
      lead={lead}
      width="wide"
      foot={
        action.isSuccess ? (
          <Button look="primary" onClick={onClose}>
            {t('dialog.close')}
          </Button>
        ) : (
          <>
            <Button onClick={onClose}>{t('dialog.cancel')}</Button>
            <Button
              look={danger ? 'danger' : 'primary'}
              busy={action.isPending}
              disabled={!ready || affected.length === 0}
              onClick={() => action.mutate()}
            >
              {confirm} ({number(affected.length)})
            </Button>
          </>
        )
      }
    >
      {!started && children}
      <p className="mb-2 text-sm" role="status">
        {started
          ? t(queues ? 'batch.progressQueued' : 'batch.progress', {
              done: number(count('done')),
              failed: number(count('failed')),
              unknown: number(count('unknown')),
              left: number(affected.length - results.size),
            })
          : t('batch.affected', {
              count: number(affected.length),
              skipped: number(items.length - affected.length),
            })}
      </p>
      <ul
        hidden={items.length === 0}
        className="max-h-[45dvh] divide-y divide-line overflow-y-auto rounded-lg border border-line"
      >
        {items.map((item) => (
          <li key={item.id} className="flex flex-wrap items-center gap-x-3 gap-y-1 px-3 py-2 text-sm">
            <ResultIcon result={results.get(item.id)} />
            <span
              className={`min-w-0 flex-1 basis-44 wrap-anywhere ${item.skip === undefined ? '' : 'text-muted'}`}
            >
              {item.label}
            </span>
            {results.get(item.id)?.text ? (
              <span className="text-danger wrap-anywhere">{results.get(item.id)?.text}</span>
            ) : item.skip === undefined ? (
              <span className="text-muted wrap-anywhere">
                {queues && results.has(item.id) ? t('batch.queued') : item.effect}
              </span>
            ) : (
              <Badge>{item.skip}</Badge>
            )}
          </li>
        ))}
      </ul>
    </Dialog>
  );
}

function ResultIcon({ result }: { result: Result | undefined }) {
  const { t } = useText();
  if (result === undefined) return null;
  const Icon = { done: CircleCheck, failed: CircleAlert, unknown: CircleHelp }[result.outcome];
  const colour = { done: 'text-success', failed: 'text-danger', unknown: 'text-warning' }[result.outcome];
  return (
    <>
      <Icon className={`size-4 shrink-0 ${colour}`} aria-hidden="true" />
      <span className="sr-only">{t(`outcome.${result.outcome}`)}</span>
    </>
  );
}
