// What a column is, which columns a person has chosen for a table, and the menu to choose them.
import * as Radix from '@radix-ui/react-dropdown-menu';
import { Check, Columns3 } from 'lucide-react';
import { useState, type ReactNode } from 'react';
import { useI18n } from '../i18n/i18n';
import { readStored, writeStored } from '../storage';
import { buttonClass } from '../ui/button';
import { MENU, MENU_ITEM } from '../ui/menu';
import type { CsvValue } from './csv';

export interface Column<Row> {
  key: string;
  label: string;
  /** Nothing, for a row that has no such value. */
  cell: (row: Row) => ReactNode;
  /** The same as text, for CSV; without it the column is not exported. */
  csv?: (row: Row) => CsvValue;
  /** The server's name for this order; without it the column cannot be sorted by. */
  sort?: string;
  /** Numbers stand at the end of their cell. */
  end?: boolean;
  /** A longer text, which may take several lines. */
  wrap?: boolean;
  /** Not shown until somebody chooses it. */
  extra?: boolean;
}

const storageKey = (table: string) => `tidepool.columns.${table}`;

function stored(table: string): string[] | null {
  const value = readStored(storageKey(table));
  return value === null ? null : value.split(',');
}

/** The chosen columns; the first one names the row and always stays. */
export function useColumns<Row>(table: string, columns: readonly Column<Row>[]) {
  const [chosen, setChosen] = useState(() => stored(table));
  const shown = columns.filter(
    (column, index) => index === 0 || (chosen ? chosen.includes(column.key) : !column.extra),
  );
  const toggle = (key: string) => {
    const keys = shown.map((column) => column.key);
    const next = keys.includes(key) ? keys.filter((one) => one !== key) : [...keys, key];
    writeStored(storageKey(table), next.join(','));
    setChosen(next);
  };
  return { shown, toggle };
}

interface ColumnMenuProps<Row> {
  columns: readonly Column<Row>[];
  shown: readonly Column<Row>[];
  onToggle: (key: string) => void;
}

export function ColumnMenu<Row>({ columns, shown, onToggle }: ColumnMenuProps<Row>) {
  const { t } = useI18n();
  return (
    <Radix.Root modal={false}>
      <Radix.Trigger className={buttonClass('quiet', '', 'small')} aria-label={t('table.columns')}>
        <Columns3 className="size-4" aria-hidden="true" />
        <span className="hidden lg:inline">{t('table.columns')}</span>
      </Radix.Trigger>
      <Radix.Portal>
        <Radix.Content
          align="end"
          sideOffset={4}
          collisionPadding={8}
          className={MENU}
          aria-label={t('table.columns')}
        >
          {columns.slice(1).map((column) => (
            <Radix.CheckboxItem
              key={column.key}
              checked={shown.includes(column)}
              onCheckedChange={() => onToggle(column.key)}
              // Stays open: one rarely changes a single column.
              onSelect={(event) => event.preventDefault()}
              className={MENU_ITEM}
            >
              <span className="flex size-4 items-center">
                <Radix.ItemIndicator>
                  <Check className="size-4" aria-hidden="true" />
                </Radix.ItemIndicator>
              </span>
              {column.label}
            </Radix.CheckboxItem>
          ))}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}
