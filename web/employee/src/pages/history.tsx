// Everything that was said and stored, to be searched and taken along.
import { useInfiniteQuery, useMutation } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { errorText } from '@tidepool/shared/api/error-text';
import { exact, RelativeTime } from '@tidepool/shared/i18n/time';
import { Page } from '@tidepool/shared/shell/page';
import { saveFile } from '@tidepool/shared/table/csv';
import { Button, buttonClass } from '@tidepool/shared/ui/button';
import { Notice } from '@tidepool/shared/ui/notice';
import { SelectChip } from '@tidepool/shared/ui/select';
import { EmptyState, ErrorState, Skeleton, StaleBar } from '@tidepool/shared/ui/states';
import { Download, MessageCircle, Search, X } from 'lucide-react';
import { useDeferredValue, useState } from 'react';
import { Link, useSearchParams } from 'wouter';
import { api } from '../api';
import '../chat/chat.css';
import { opensInChat } from '../chat/conversation-key';
import { Formatted } from '../chat/markdown/formatted';
import { beginningOf } from '../chat/beginning';
import { useInstances } from '../instances-query';
import { useText } from '../messages';

const SIZE = 30;

const FORMATS = {
  markdown: { ending: 'md', label: 'history.export' },
  json: { ending: 'json', label: 'history.exportJson' },
} as const;
type Format = keyof typeof FORMATS;

interface PageParam {
  page: number;
  /** Only what is older: how far back the search came before. */
  search_before?: string;
}

interface Answered {
  page: number;
  total: number;
  searched_since?: string | null;
}

/** The next page of what was looked through; then a search goes on with what is older. */
function nextPage(last: Answered, param: PageParam): PageParam | undefined {
  if (last.page * SIZE < last.total) return { ...param, page: last.page + 1 };
  return last.searched_since ? { page: 1, search_before: last.searched_since } : undefined;
}

interface Wanted {
  instance_id?: string;
  session_key?: string;
  q?: string;
}

export default function HistoryPageView() {
  const i18n = useText();
  const { t, number } = i18n;
  const [search, setSearch] = useSearchParams();
  const instance = search.get('instance') ?? '';
  const [text, setText] = useState(search.get('q') ?? '');
  const q = useDeferredValue(text.trim());
  const session = search.get('session') ?? '';
  const wanted: Wanted = {
    ...(instance && { instance_id: instance }),
    ...(session && { session_key: session }),
    ...(q && { q }),
  };
  const instances = useInstances();
  const names = new Map(instances.data?.map((one) => [one.id, one.name]));
  const history = useInfiniteQuery({
    queryKey: ['history', wanted],
    initialPageParam: { page: 1 },
    queryFn: ({ pageParam }) =>
      unwrap(api.GET('/me/chat/history', { params: { query: { ...wanted, ...pageParam, size: SIZE } } })),
    getNextPageParam: (last, _, param) => nextPage(last, param),
  });
  const exported = useMutation({ mutationFn: (format: Format) => exportAll(wanted, format) });
  const first = history.data?.pages[0];
  const last = history.data?.pages.at(-1);
  // The last page of what was looked through, with older messages behind it.
  const searchedSince = last && last.page * SIZE >= last.total ? last.searched_since : null;
  const messages = history.data?.pages.flatMap((one) => one.messages) ?? [];
  // Each part of a search counts what it looked through.
  const parts = history.data?.pages.filter((one) => one.page === 1) ?? [];
  const found = parts.reduce((sum, one) => sum + one.total, 0);
  return (
    <Page title={t('history.title')} lead={t('history.lead')}>
      <div className="mb-5 flex flex-wrap items-center gap-3">
        <div className="relative min-w-48 flex-1 max-sm:basis-full">
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
        {session && (
          <Button size="small" onClick={() => setSearch(instance ? { instance } : {})}>
            <X className="size-4" aria-hidden="true" />
            {t('history.allConversations')}
          </Button>
        )}
        {session && names.has(instance) && opensInChat({ instance_id: instance, session_key: session }) && (
          <ChatLink instance={instance} session={session} button />
        )}
        {(Object.keys(FORMATS) as Format[]).map((format) => (
          <Button
            key={format}
            size="small"
            busy={exported.isPending && exported.variables === format}
            disabled={messages.length === 0}
            onClick={() => exported.mutate(format)}
          >
            <Download className="size-4" aria-hidden="true" />
            {t(FORMATS[format].label)}
          </Button>
        ))}
      </div>
      {exported.isError && (
        <div className="mb-5">
          <Notice tone="error">{t('history.exportFailed', { why: errorText(exported.error, i18n) })}</Notice>
        </div>
      )}
      {first === undefined ? (
        history.isError ? (
          <ErrorState error={history.error} onRetry={() => void history.refetch()} />
        ) : (
          <Skeleton lines={8} />
        )
      ) : messages.length === 0 ? (
        <>
          <EmptyState title={t(q ? 'history.notFound' : 'history.none')}>{t('history.noneHint')}</EmptyState>
          <More history={history} searchedSince={searchedSince} />
        </>
      ) : (
        <>
          {history.isError && (
            <StaleBar
              since={history.dataUpdatedAt}
              busy={history.isFetching}
              onRetry={() => void history.refetch()}
            />
          )}
          <p role="status" className="mb-2 text-sm text-muted">
            {t('history.count', { count: number(found) })}
          </p>
          {/* What is older stands above. */}
          {session && <More history={history} searchedSince={searchedSince} older />}
          <ol className="divide-y divide-line rounded-xl border border-line bg-surface shadow-card">
            {(session ? messages.toReversed() : messages).map((message) => (
              <li key={message.id} className="px-4 py-3">
                <p className="mb-0.5 flex flex-wrap items-center gap-x-2 text-xs text-muted">
                  <span className="font-medium text-ink">
                    {message.role === 'user'
                      ? t('chat.you')
                      : (names.get(message.instance_id) ?? message.instance_id)}
                  </span>
                  <RelativeTime at={message.created_at} />
                  {message.session_key && !session && (
                    <button
                      type="button"
                      className="min-h-6 rounded underline underline-offset-2 hover:text-ink"
                      onClick={() =>
                        setSearch({ instance: message.instance_id, session: message.session_key })
                      }
                    >
                      {t('history.conversation')}
                    </button>
                  )}
                  {names.has(message.instance_id) && opensInChat(message) && !session && (
                    <ChatLink instance={message.instance_id} session={message.session_key} />
                  )}
                </p>
                <Content message={message} wanted={q} whole={session !== ''} />
              </li>
            ))}
          </ol>
          {!session && <More history={history} searchedSince={searchedSince} />}
        </>
      )}
    </Page>
  );
}

interface ChatLinkProps {
  instance: string;
  session: string;
  button?: boolean;
}

function ChatLink({ instance, session, button = false }: ChatLinkProps) {
  const { t } = useText();
  const place = new URLSearchParams({ instance, conversation: session });
  return (
    <Link
      href={`/?${place.toString()}`}
      className={
        button
          ? buttonClass('secondary', '', 'small')
          : 'flex min-h-6 items-center rounded underline underline-offset-2 hover:text-ink'
      }
    >
      {button && <MessageCircle className="size-4" aria-hidden="true" />}
      {t('history.open')}
    </Link>
  );
}

interface ContentProps {
  message: { role: string; content: string };
  wanted: string;
  whole: boolean;
}

/** What was found is shown as it was written, with the words marked; all else as in the chat. */
function Content({ message, wanted, whole }: ContentProps) {
  const { t } = useText();
  const [open, setOpen] = useState(whole);
  const { content } = message;
  if (wanted !== '')
    return (
      <p className="line-clamp-6 text-sm whitespace-pre-wrap">
        <Marked text={content} wanted={wanted} />
      </p>
    );
  const beginning = open || whole ? content : beginningOf(content);
  return (
    <div className="text-sm">
      {message.role === 'user' ? (
        <p className="whitespace-pre-wrap">{beginning}</p>
      ) : (
        <Formatted text={beginning} />
      )}
      {beginning !== content && (
        <button
          type="button"
          className="mt-1 min-h-6 rounded text-xs text-muted underline underline-offset-2 hover:text-ink"
          onClick={() => setOpen(true)}
        >
          {t('history.whole')}
        </button>
      )}
    </div>
  );
}

interface MoreProps {
  /** It stands above what it goes on from. */
  older?: boolean;
  history: { hasNextPage: boolean; isFetchingNextPage: boolean; fetchNextPage: () => unknown };
  /** How far back a search came, where there are older messages. */
  searchedSince: string | null | undefined;
}

/** The next page, or for a search the next older part. */
function More({ history, searchedSince, older = false }: MoreProps) {
  const { t, locale } = useText();
  if (!history.hasNextPage) return null;
  return (
    <div
      role="status"
      className="my-4 flex flex-wrap items-center justify-center gap-x-3 gap-y-1 text-sm text-muted"
    >
      {searchedSince && t('table.searchedSince', { time: exact(new Date(searchedSince).getTime(), locale) })}
      <Button busy={history.isFetchingNextPage} onClick={() => void history.fetchNextPage()}>
        {t(searchedSince ? 'table.searchFurther' : older ? 'older.more' : 'history.more')}
      </Button>
    </div>
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

/** The server's own file of it, whole however long it is. */
async function exportAll(wanted: Wanted, format: Format) {
  const answer = api.GET('/me/chat/export', { params: { query: { ...wanted, format } }, parseAs: 'blob' });
  const file = await answer.then(
    ({ response, data }) => (response.ok ? data : undefined),
    () => undefined,
  );
  // Why there is none is said by the answer itself.
  if (file === undefined) await unwrap(answer as never);
  else saveFile(`${wanted.instance_id ?? 'history'}.${FORMATS[format].ending}`, file);
}
