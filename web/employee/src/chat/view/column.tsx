// The left column: the own instances with today's use, and below the chosen one its conversations.
import { exact } from '@tidepool/shared/i18n/time';
import { StatusDot } from '@tidepool/shared/ui/badge';
import { VersionTag } from '@tidepool/shared/shell/version';
import { staleSince } from '@tidepool/shared/ui/panel';
import { IconButton } from '@tidepool/shared/ui/icon-button';
import { CloudOff, PanelLeftClose, Search, SquarePen } from 'lucide-react';
import { useState } from 'react';
import { Link } from 'wouter';
import { HEALTH_TEXTS, HEALTH_TONES } from '../../health';
import { useSummary, type Instance } from '../../instances-query';
import { useText } from '../../messages';
import { compact, usd } from '../../money';
import type { Chat } from '../use-chat';
import { Conversations } from './conversations';

interface ColumnProps {
  instances: readonly Instance[];
  selected: Instance;
  /** Null while the instance is being set up. */
  chat: Chat | null;
  onSelect: (id: string) => void;
  onNewChat: () => void;
  /** Absent where the column is a drawer, which has its own way out. */
  onCollapse?: () => void;
}

export function Column({ instances, selected, chat, onSelect, onNewChat, onCollapse }: ColumnProps) {
  const { t } = useText();
  const [search, setSearch] = useState('');
  return (
    <div className="flex h-full flex-col bg-surface">
      <div className="flex items-center gap-1 px-3 pt-3 pb-1">
        <h2 className="flex-1 ps-1.5 text-xs font-semibold text-muted">{t('column.instances')}</h2>
        {onCollapse && <IconButton icon={PanelLeftClose} label={t('column.hide')} onClick={onCollapse} />}
      </div>
      <ul className="max-h-[45%] shrink-0 space-y-0.5 overflow-y-auto px-3 pb-2">
        {instances.map((instance) => (
          <li key={instance.id}>
            <InstanceButton
              instance={instance}
              selected={instance.id === selected.id}
              onSelect={() => onSelect(instance.id)}
            />
          </li>
        ))}
      </ul>
      {chat !== null && chat.engine.kind !== 'embed' && (
        <div className="flex min-h-0 flex-1 flex-col border-t border-line">
          <div className="flex items-center gap-1 px-3 pt-3 pb-1">
            <h2 className="flex-1 ps-1.5 text-xs font-semibold text-muted">{t('column.conversations')}</h2>
            <IconButton
              icon={SquarePen}
              label={t('column.new')}
              hint={t('column.newHint')}
              onClick={onNewChat}
            />
          </div>
          {chat.state.conversations.length > 5 && (
            <div className="relative mx-3 mb-1">
              <Search
                className="pointer-events-none absolute start-2.5 top-1/2 size-4 -translate-y-1/2 text-muted"
                aria-hidden="true"
              />
              <input
                type="search"
                value={search}
                onChange={(event) => setSearch(event.target.value)}
                aria-label={t('column.search')}
                placeholder={t('column.search')}
                className="min-h-9 w-full rounded-lg border border-line bg-ground ps-8 pe-2 text-sm placeholder:text-muted"
              />
            </div>
          )}
          <Conversations chat={chat} search={search} />
        </div>
      )}
      <Today />
    </div>
  );
}

function InstanceButton({
  instance,
  selected,
  onSelect,
}: {
  instance: Instance;
  selected: boolean;
  onSelect: () => void;
}) {
  const { t, locale } = useText();
  const { today } = instance;
  return (
    <button
      type="button"
      aria-current={selected || undefined}
      onClick={onSelect}
      className="w-full rounded-lg px-2.5 py-2 text-start hover:bg-sunken aria-[current=true]:bg-accent-soft"
    >
      <span className="flex items-center gap-2">
        <StatusDot tone={HEALTH_TONES[instance.status]} />
        <span className="min-w-0 flex-1 truncate text-sm font-medium">{instance.name}</span>
        <span className="sr-only">{t(HEALTH_TEXTS[instance.status])}</span>
      </span>
      <span className="mt-0.5 block truncate ps-4.5 text-xs text-muted">
        {instance.profession_name ? `${instance.profession_name} · ${instance.model}` : instance.model}
      </span>
      <span className="mt-0.5 block truncate ps-4.5 text-xs text-muted tabular-nums">
        {today.requests === 0
          ? t('column.unusedToday')
          : t('column.today', {
              requests: compact(today.requests, locale),
              tokens: compact(today.total_tokens, locale),
              cost: usd(today.cost_usd, locale),
            })}
      </span>
    </button>
  );
}

function Today() {
  const { t, locale } = useText();
  const summary = useSummary();
  const today = summary.data?.today;
  const since = staleSince(summary.data) ?? (summary.isError ? summary.dataUpdatedAt : null);
  const old = today && since !== null ? t('column.asOf', { when: exact(since, locale) }) : null;
  return (
    <div className="mt-auto flex items-center gap-2 border-t border-line px-4 py-2.5 text-xs text-muted">
      <Link
        href="/usage"
        className="min-w-0 flex-1 truncate rounded tabular-nums hover:text-ink hover:underline"
      >
        {today
          ? t('column.total', {
              tokens: compact(today.total_tokens, locale),
              cost: usd(today.cost_usd, locale),
            })
          : t('column.usage')}
      </Link>
      {old !== null && (
        <span role="img" aria-label={old} title={old} className="text-warning">
          <CloudOff className="size-4" aria-hidden="true" />
        </span>
      )}
      <VersionTag />
    </div>
  );
}
