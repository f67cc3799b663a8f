// The chosen instance's conversations, by day, found by their titles.
import { useText, type Key } from '../../messages';
import type { Conversation } from '../engine/types';
import type { Chat } from '../use-chat';

const DAY = 86_400_000;
/** The column has room for no more. */
const SHORT = { dateStyle: 'short', timeStyle: 'short' } as const;

function ageOf(moment: number, now: number): Key {
  const midnight = new Date(now).setHours(0, 0, 0, 0);
  if (moment >= midnight) return 'column.ageToday';
  if (moment >= midnight - DAY) return 'column.ageYesterday';
  return moment >= midnight - 6 * DAY ? 'column.ageWeek' : 'column.ageOlder';
}

export function Conversations({ chat, search }: { chat: Chat; search: string }) {
  const { t } = useText();
  const { conversations, conversation, messages } = chat.state;
  const wanted = search.trim().toLowerCase();
  const found = conversations.filter((one) =>
    (one.main ? t('column.main') : one.title).toLowerCase().includes(wanted),
  );
  const isNew = conversation !== null && !conversations.some((one) => one.key === conversation);
  if (conversations.length === 0 && !isNew)
    return (
      <p className="px-4.5 py-1 text-xs text-muted">
        {t(messages.length === 0 ? 'column.noConversations' : 'column.oneConversation')}
      </p>
    );
  if (found.length === 0 && wanted !== '')
    return <p className="px-4.5 py-1 text-xs text-muted">{t('column.notFound')}</p>;
  const groups = grouped(found);
  return (
    <div className="min-h-0 flex-1 overflow-y-auto px-3 pb-3">
      {isNew && wanted === '' && (
        <ConversationButton chat={chat} one={{ key: conversation, title: t('column.new'), updatedAt: 0 }} />
      )}
      {groups.map(([age, list]) => (
        <section key={age} aria-label={t(age)}>
          <p aria-hidden="true" className="px-2.5 pt-2 pb-0.5 text-xs text-muted">
            {t(age)}
          </p>
          <ul>
            {list.map((one) => (
              <li key={one.key}>
                <ConversationButton chat={chat} one={one} />
              </li>
            ))}
          </ul>
        </section>
      ))}
    </div>
  );
}

function grouped(list: readonly Conversation[]): [Key, Conversation[]][] {
  const now = Date.now();
  const groups = new Map<Key, Conversation[]>();
  for (const one of list) {
    const age = ageOf(one.updatedAt, now);
    groups.set(age, [...(groups.get(age) ?? []), one]);
  }
  return [...groups];
}

function ConversationButton({ chat, one }: { chat: Chat; one: Conversation }) {
  const { t, locale } = useText();
  return (
    <button
      type="button"
      aria-current={one.key === chat.state.conversation || undefined}
      onClick={() => chat.engine.openConversation(one.key)}
      className="block min-h-8 w-full truncate rounded-lg px-2.5 py-1 text-start text-sm text-muted hover:bg-sunken hover:text-ink aria-[current=true]:bg-sunken aria-[current=true]:font-medium aria-[current=true]:text-ink"
    >
      {one.main
        ? t('column.main')
        : one.title || t('column.untitled', { when: new Date(one.updatedAt).toLocaleString(locale, SHORT) })}
    </button>
  );
}
