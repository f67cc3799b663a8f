// Everything that was said and stored, to be searched and taken along.
import { useInfiniteQuery, useMutation } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { RelativeTime } from '@tidepool/shared/i18n/time';
import { Page } from '@tidepool/shared/shell/page';
import { saveFile } from '@tidepool/shared/table/csv';
import { Button } from '@tidepool/shared/ui/button';
import { SelectChip } from '@tidepool/shared/ui/select';
import { EmptyState, ErrorState, Skeleton } from '@tidepool/shared/ui/states';
import { Download, Search } from 'lucide-react';
import { useDeferredValue, useState } from 'react';
import { useSearchParams } from 'wouter';
import { threadMarkdown } from '../chat/export';
import { useInstances } from '../instances-query';
import { useText } from '../messages';
import { notOffered, pending, type HistoryMessage } from '../pending-api';

const SIZE = 30;
const EXPORT_SIZE = 200;

interface HistoryPage {
  messages: HistoryMessage[];
  total: number;
}

async function page(instance: string, q: string, number: number, size: number): Promise<HistoryPage | null> {
  const query = { page: number, size, ...(instance && { instance_id: instance }), ...(q && { q }) };
  try {
    return await unwrap(pending.GET('/me/chat/history', { params: { query } as never }));
  } catch (error) {
    if (notOffered(error)) return null;
    throw error;
  }
}

export default function HistoryPageView() {
  const { t, number } = useText();
  const [search, setSearch] = useSearchParams();
  const instance = search.get('instance') ?? '';
  const [text, setText] = useState(search.get('q') ?? '');
  const q = useDeferredValue(text.trim());
  const instances = useInstances();
  const names = new Map(instances.data?.map((one) => [one.id, one.name]));
  const history = useInfiniteQuery({
    queryKey: ['history', instance, q],
    initialPageParam: 1,
    queryFn: ({ pageParam }) => page(instance, q, pageParam, SIZE),
    getNextPageParam: (last, all) =>
      last !== null && all.length * SIZE < last.total ? all.length + 1 : undefined,
  });
  const exported = useMutation({ mutationFn: () => exportAll(instance, q, names, t('chat.you')) });
  const first = history.data?.pages[0];
  const messages = history.data?.pages.flatMap((one) => one?.messages ?? []) ?? [];
  return (
    <Page title={t('history.title')} lead={t('history.lead')}>
      <div className="mb-5 flex flex-wrap items-center gap-3">
        <div className="relative min-w-48 flex-1">
          <Search
            className="pointer-events-none absolute start-3 top-1/2 size-4 -translate-y-1/2 text-muted"
            aria-hidden="true"
          />
          <input
            type="search"
            value={text}
            onChange={(event) => setText(event.target.value)}
            aria-label={t('history.search')}
            placeholder={t('history.search')}
            className="min-h-10 w-full rounded-lg border border-control bg-surface ps-9 pe-3 text-sm placeholder:text-muted"
          />
        </div>
        <SelectChip
          label={t('log.instance')}
          value={instance}
          choices={[
            { value: '', label: t('log.allInstances') },
            ...(instances.data ?? []).map((one) => ({ value: one.id, label: one.name })),
          ]}
          onChange={(event) => setSearch(event.target.value ? { instance: event.target.value } : {})}
        />
        <Button
          size="small"
          busy={exported.isPending}
          disabled={messages.length === 0}
          onClick={() => exported.mutate()}
        >
          <Download className="size-4" aria-hidden="true" />
          {t('history.export')}
        </Button>
      </div>
      {first === undefined ? (
        history.isError ? (
          <ErrorState error={history.error} onRetry={() => void history.refetch()} />
        ) : (
          <Skeleton lines={8} />
        )
      ) : first === null ? (
        <EmptyState title={t('history.notOffered')}>{t('history.notOfferedHint')}</EmptyState>
      ) : messages.length === 0 ? (
        <EmptyState title={t(q ? 'history.notFound' : 'history.none')}>{t('history.noneHint')}</EmptyState>
      ) : (
        <>
          <p role="status" className="mb-2 text-sm text-muted">
            {t('history.count', { count: number(first.total) })}
          </p>
          <ol className="divide-y divide-line rounded-xl border border-line bg-surface shadow-card">
            {messages.map((message) => (
              <li key={message.id} className="px-4 py-3">
                <p className="mb-0.5 flex flex-wrap gap-x-2 text-xs text-muted">
                  <span className="font-medium text-ink">
                    {message.role === 'user'
                      ? t('chat.you')
                      : (names.get(message.instance_id) ?? message.instance_id)}
                  </span>
                  <RelativeTime at={message.created_at} />
                </p>
                <p className="line-clamp-6 text-sm whitespace-pre-wrap">
                  <Marked text={message.content} wanted={q} />
                </p>
              </li>
            ))}
          </ol>
          {history.hasNextPage && (
            <div className="mt-4 flex justify-center">
              <Button busy={history.isFetchingNextPage} onClick={() => void history.fetchNextPage()}>
                {t('history.more')}
              </Button>
            </div>
          )}
        </>
      )}
    </Page>
  );
}

/** The text with what was searched for marked in it. */
function Marked({ text, wanted }: { text: string; wanted: string }) {
  if (wanted === '') return text;
  const at = text.toLowerCase().indexOf(wanted.toLowerCase());
  if (at === -1) return text;
  const from = Math.max(0, at - 120);
  return (
    <>
      {from > 0 && '…'}
      {text.slice(from, at)}
      <mark className="rounded-sm bg-warning-soft text-warning">{text.slice(at, at + wanted.length)}</mark>
      {text.slice(at + wanted.length)}
    </>
  );
}

async function exportAll(instance: string, q: string, names: ReadonlyMap<string, string>, you: string) {
  const all: HistoryMessage[] = [];
  for (let at = 1; ; at += 1) {
    const one = await page(instance, q, at, EXPORT_SIZE);
    if (one === null || one.messages.length === 0) break;
    all.push(...one.messages);
    if (all.length >= one.total) break;
  }
  const lines = all
    .toReversed()
    .map((one) => ({ role: one.role, text: one.content, at: new Date(one.created_at).getTime() }));
  const name = names.get(instance) ?? 'tidepool';
  saveFile(
    `${instance || 'history'}.md`,
    threadMarkdown(name, lines, document.documentElement.lang, { you }),
    'text/markdown;charset=utf-8',
  );
}
