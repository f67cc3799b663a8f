// The bar above a table: search, filters, columns, export; and the one that takes its place while rows are chosen.
import { useMutation } from '@tanstack/react-query';
import { Download, Search, X } from 'lucide-react';
import { useEffect, useRef, useState, type ReactNode } from 'react';
import { errorText } from '../api/error-text';
import { useI18n } from '../i18n/i18n';
import { Button } from '../ui/button';
import { toast } from '../ui/toast';
import type { Selection } from './selection';
import type { TableState } from './table-state';

const TYPING_MS = 250;

/** Searches while one types, but not at every key. "/" leads here from anywhere on the page. */
export function SearchBox({ state, label }: { state: TableState; label: string }) {
  const [text, setText] = useState(state.q);
  const [seen, setSeen] = useState(state.q);
  const input = useRef<HTMLInputElement>(null);
  // The address changed by other means, such as the back button or "clear".
  if (seen !== state.q) {
    setSeen(state.q);
    setText(state.q);
  }

  const { q, set } = state;
  useEffect(() => {
    if (text === q) return;
    const timer = setTimeout(() => {
      setSeen(text);
      set({ q: text });
    }, TYPING_MS);
    return () => clearTimeout(timer);
  }, [text, q, set]);

  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const typing =
        event.target instanceof Element && event.target.closest('input, textarea, select, [role=dialog]');
      if (event.key !== '/' || typing) return;
      event.preventDefault();
      input.current?.focus();
    };
    window.addEventListener('keydown', press);
    return () => window.removeEventListener('keydown', press);
  }, []);

  return (
    <div className="relative min-w-40 flex-1 basis-52 sm:max-w-72">
      <Search
        className="pointer-events-none absolute start-3 top-1/2 size-4 -translate-y-1/2 text-muted"
        aria-hidden="true"
      />
      <input
        ref={input}
        type="search"
        aria-label={label}
        placeholder={label}
        value={text}
        onChange={(event) => setText(event.target.value)}
        className="min-h-9 w-full rounded-lg border border-control/60 bg-surface py-1 ps-9 pe-3 text-base placeholder:text-muted hover:border-control sm:text-sm"
      />
    </div>
  );
}

export function ExportButton({ run }: { run: () => Promise<unknown> }) {
  const i18n = useI18n();
  const job = useMutation({
    mutationFn: run,
    onError: (error) => toast('error', errorText(error, i18n)),
  });
  return (
    <Button
      look="quiet"
      size="small"
      busy={job.isPending}
      onClick={() => job.mutate()}
      aria-label={i18n.t('table.csv')}
    >
      {!job.isPending && <Download className="size-4" aria-hidden="true" />}
      <span className="hidden lg:inline">CSV</span>
    </Button>
  );
}

interface SelectionBarProps<Row> {
  selection: Selection<Row>;
  total: number;
  /** Chooses every row that matches, on all pages. */
  onAll?: () => Promise<unknown>;
  children: ReactNode;
}

export function SelectionBar<Row>({ selection, total, onAll, children }: SelectionBarProps<Row>) {
  const i18n = useI18n();
  const { t, number } = i18n;
  const all = useMutation({
    mutationFn: async () => onAll?.(),
    onError: (error) => toast('error', errorText(error, i18n)),
  });
  return (
    <div
      role="toolbar"
      aria-label={t('table.selected', { count: number(selection.rows.length) })}
      // The rows may be far below: what can be done with them stays in view.
      className="sticky top-16 z-10 flex min-h-9 flex-wrap items-center gap-2 rounded-lg bg-accent-soft px-2 py-1 text-sm text-accent-strong shadow-card md:top-2"
    >
      <button
        type="button"
        className="flex size-7 items-center justify-center rounded hover:bg-surface"
        aria-label={t('table.clearSelection')}
        onClick={selection.clear}
      >
        <X className="size-4" aria-hidden="true" />
      </button>
      <span className="font-medium tabular-nums" aria-live="polite">
        {t('table.selected', { count: number(selection.rows.length) })}
      </span>
      {onAll && total > selection.rows.length && (
        <button
          type="button"
          className="min-h-7 rounded px-1.5 underline underline-offset-2"
          onClick={() => all.mutate()}
        >
          {all.isPending ? t('state.loading') : t('table.selectAll', { count: number(total) })}
        </button>
      )}
      <div className="ms-auto flex flex-wrap gap-2">{children}</div>
    </div>
  );
}
