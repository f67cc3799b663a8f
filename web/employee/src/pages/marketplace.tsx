// The marketplace: skills, role packs and configurations to look at and to put on the own instances.
import { Page } from '@tidepool/shared/shell/page';
import { Badge } from '@tidepool/shared/ui/badge';
import { Segmented } from '@tidepool/shared/ui/segmented';
import { EmptyState, ErrorState, Skeleton } from '@tidepool/shared/ui/states';
import { Search, TriangleAlert } from 'lucide-react';
import { useDeferredValue, useState } from 'react';
import { useSearchParams } from 'wouter';
import { Installs } from '../marketplace/installs';
import { ItemPanel } from '../marketplace/item-panel';
import { useInstalls, useItems, type Item } from '../marketplace/queries';
import { useText } from '../messages';

const TYPES = ['all', 'skill', 'role_pack', 'config'] as const;

export default function Marketplace() {
  const { t } = useText();
  const [search, setSearch] = useSearchParams();
  const [type, setType] = useState<(typeof TYPES)[number]>('all');
  const [q, setQ] = useState('');
  const items = useItems(type === 'all' ? '' : type, useDeferredValue(q.trim()));
  const open = search.get('item');
  return (
    <Page title={t('nav.marketplace')} lead={t('marketplace.lead')}>
      <div className="grid items-start gap-6 xl:grid-cols-[1fr_19rem]">
        <div className="min-w-0">
          <div className="mb-4 flex flex-wrap items-center gap-3">
            <div className="relative min-w-48 flex-1">
              <Search
                className="pointer-events-none absolute start-3 top-1/2 size-4 -translate-y-1/2 text-muted"
                aria-hidden="true"
              />
              <input
                type="search"
                value={q}
                onChange={(event) => setQ(event.target.value)}
                aria-label={t('marketplace.search')}
                placeholder={t('marketplace.search')}
                className="min-h-10 w-full rounded-lg border border-control bg-surface ps-9 pe-3 text-sm placeholder:text-muted"
              />
            </div>
            <Segmented
              legend={t('marketplace.type')}
              compact
              value={type}
              options={TYPES.map((value) => ({ value, label: t(`type.${value}`) }))}
              onChange={setType}
            />
          </div>
          {items.data === undefined ? (
            items.isError ? (
              <ErrorState error={items.error} onRetry={() => void items.refetch()} />
            ) : (
              <Skeleton lines={8} />
            )
          ) : items.data.length === 0 ? (
            <EmptyState title={t('marketplace.none')}>{t('marketplace.noneHint')}</EmptyState>
          ) : (
            <ul className="grid gap-3 sm:grid-cols-2">
              {items.data.map((item) => (
                <ItemCard key={item.id} item={item} onOpen={() => setSearch({ item: item.id })} />
              ))}
            </ul>
          )}
        </div>
        <Installs />
      </div>
      {open !== null && (
        <ItemPanel
          key={open}
          id={open}
          name={items.data?.find((item) => item.id === open)?.name ?? t('nav.marketplace')}
          onClose={() => setSearch({})}
        />
      )}
    </Page>
  );
}

function ItemCard({ item, onOpen }: { item: Item; onOpen: () => void }) {
  const { t } = useText();
  const installed = useInstalls().data?.some((one) => one.item_id === item.id && one.state === 'installed');
  return (
    <li className="relative flex flex-col gap-2.5 rounded-xl border border-line bg-surface p-4 shadow-card has-[button:hover]:border-control">
      <div className="flex items-start gap-3">
        <span
          aria-hidden="true"
          className="flex size-10 shrink-0 items-center justify-center rounded-xl bg-sunken text-xl"
        >
          {item.icon}
        </span>
        <div className="min-w-0">
          <h2 className="font-semibold">
            {/* The whole card is the button's. */}
            <button
              type="button"
              className="rounded text-start after:absolute after:inset-0"
              onClick={onOpen}
            >
              {item.name}
            </button>
          </h2>
          <p className="text-xs text-muted">
            {t(`type.${item.type}`)} · {item.version}
          </p>
        </div>
      </div>
      <p className="text-sm text-muted">{item.description}</p>
      <div className="mt-auto flex flex-wrap gap-1.5 empty:hidden">
        {installed && <Badge tone="good">{t('install.installed')}</Badge>}
        {item.finding_count > 0 && (
          <Badge tone="warn">
            <TriangleAlert className="size-3.5" aria-hidden="true" />
            {t('item.findingCount', { count: item.finding_count })}
          </Badge>
        )}
      </div>
    </li>
  );
}
