// The pages an app offers, as links: beside each other in a header, below each other in a side bar or drawer.
import type { LucideIcon } from 'lucide-react';
import { Link, useRoute } from 'wouter';
import { useI18n } from '../i18n/i18n';

export interface NavItem {
  href: string;
  label: string;
  icon: LucideIcon;
  /** Items of one group stand together below its name, in a column. */
  group?: string;
  /** Something there wants attention. */
  count?: number;
  /** Left out of a narrow row, since the account menu leads there as well. */
  inMenu?: boolean;
}

interface NavProps {
  items: readonly NavItem[];
  direction: 'row' | 'column';
  onNavigate?: () => void;
}

export function Nav({ items, direction, onNavigate }: NavProps) {
  const { t } = useI18n();
  return (
    <nav aria-label={t('app.navigation')}>
      <ul className={direction === 'row' ? 'flex items-center gap-1' : 'flex flex-col gap-px'}>
        {items.map((item, index) => (
          <li key={item.href} className={direction === 'row' && item.inMenu ? 'max-lg:hidden' : undefined}>
            {direction === 'column' && item.group && item.group !== items[index - 1]?.group && (
              <p aria-hidden="true" className="px-3 pt-2.5 pb-0.5 text-xs font-medium text-muted">
                {item.group}
              </p>
            )}
            <NavLink item={item} row={direction === 'row'} onNavigate={onNavigate} />
          </li>
        ))}
      </ul>
    </nav>
  );
}

interface NavLinkProps {
  item: NavItem;
  row: boolean;
  onNavigate?: () => void;
}

function NavLink({ item, row, onNavigate }: NavLinkProps) {
  // A section stays marked on the pages below it; the home page only on itself.
  const [active] = useRoute(item.href === '/' ? '/' : `${item.href}/*?`);
  const Icon = item.icon;
  return (
    <Link
      href={item.href}
      onClick={onNavigate}
      aria-current={active ? 'page' : undefined}
      className={`flex items-center gap-2.5 rounded-lg text-sm font-medium text-muted transition-colors hover:bg-sunken hover:text-ink aria-[current=page]:bg-accent-soft aria-[current=page]:text-accent-strong ${row ? 'min-h-9 px-2 py-1.5 whitespace-nowrap max-lg:text-[0.8125rem] lg:px-3' : 'min-h-9 px-3 py-1 md:min-h-8'}`}
    >
      {/* Beside each other on a narrow window, the words alone have room. */}
      <Icon className={`size-4.5 shrink-0 ${row ? 'max-xl:hidden' : ''}`} aria-hidden="true" />
      {item.label}
      {item.count !== undefined && item.count > 0 && (
        <span className="ms-auto rounded-full bg-danger-soft px-1.5 text-xs text-danger tabular-nums">
          {item.count}
        </span>
      )}
    </Link>
  );
}
