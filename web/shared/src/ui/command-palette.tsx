// The shell of the Ctrl/⌘K window: one field, groups of results, all by keyboard. What can be found is the app's business.
import * as Radix from '@radix-ui/react-dialog';
import { LoaderCircle, Search, type LucideIcon } from 'lucide-react';
import { useEffect, useId, useState, type KeyboardEvent } from 'react';
import { useI18n } from '../i18n/i18n';

export interface Command {
  id: string;
  label: string;
  hint?: string;
  icon?: LucideIcon;
  run: () => void;
}

export interface CommandGroup {
  label: string;
  commands: readonly Command[];
}

interface PaletteProps {
  open: boolean;
  onClose: () => void;
  placeholder: string;
  text: string;
  onText: (text: string) => void;
  /** Called when its field has the focus. */
  onReady?: () => void;
  groups: readonly CommandGroup[];
  busy?: boolean;
}

export function CommandPalette(props: PaletteProps) {
  const { open, onClose, placeholder, text, onText, onReady, groups, busy = false } = props;
  const { t } = useI18n();
  const id = useId();
  const [at, setAt] = useState(0);
  const commands = groups.flatMap((group) => group.commands);
  const active = commands[Math.min(at, commands.length - 1)];

  useEffect(() => {
    if (active) document.getElementById(`${id}-${active.id}`)?.scrollIntoView({ block: 'nearest' });
  }, [active, id]);

  function run(command: Command) {
    onClose();
    command.run();
  }

  function keys(event: KeyboardEvent) {
    const size = commands.length;
    if (event.key === 'Enter' && active) {
      event.preventDefault();
      run(active);
    }
    if (event.key !== 'ArrowDown' && event.key !== 'ArrowUp') return;
    event.preventDefault();
    const step = event.key === 'ArrowDown' ? 1 : size - 1;
    if (size > 0) setAt((Math.min(at, size - 1) + step) % size);
  }

  return (
    <Radix.Root open={open} onOpenChange={(next) => next || onClose()}>
      <Radix.Portal>
        <Radix.Overlay className="fade-in fixed inset-0 z-40 bg-[#000]/45" />
        <Radix.Content
          aria-describedby={undefined}
          className="rise-in fixed inset-x-3 top-[10dvh] z-50 mx-auto flex max-h-[76dvh] max-w-xl flex-col overflow-hidden rounded-xl border border-line bg-surface shadow-high outline-none"
        >
          <Radix.Title className="sr-only">{placeholder}</Radix.Title>
          <div className="flex items-center gap-3 border-b border-line px-4">
            {busy ? (
              <LoaderCircle className="size-4.5 shrink-0 animate-spin text-muted" aria-hidden="true" />
            ) : (
              <Search className="size-4.5 shrink-0 text-muted" aria-hidden="true" />
            )}
            <input
              role="combobox"
              aria-expanded="true"
              aria-controls={`${id}-list`}
              aria-autocomplete="list"
              aria-activedescendant={active ? `${id}-${active.id}` : undefined}
              aria-label={placeholder}
              placeholder={placeholder}
              autoComplete="off"
              spellCheck={false}
              value={text}
              onChange={(event) => {
                onText(event.target.value);
                setAt(0);
              }}
              onFocus={onReady}
              onKeyDown={keys}
              className="min-h-13 w-full bg-transparent text-base outline-none placeholder:text-muted focus-visible:shadow-none focus-visible:outline-none"
            />
          </div>
          <div id={`${id}-list`} role="listbox" aria-label={placeholder} className="overflow-y-auto p-2">
            {groups.map(
              (group) =>
                group.commands.length > 0 && (
                  <div key={group.label} role="group" aria-label={group.label}>
                    <div aria-hidden="true" className="px-2.5 pt-2 pb-1 text-xs font-medium text-muted">
                      {group.label}
                    </div>
                    {group.commands.map((command) => {
                      const Icon = command.icon;
                      return (
                        <div
                          key={command.id}
                          id={`${id}-${command.id}`}
                          role="option"
                          tabIndex={-1}
                          aria-selected={command === active}
                          onPointerMove={() => setAt(commands.indexOf(command))}
                          onClick={() => run(command)}
                          onKeyDown={keys}
                          className="flex min-h-10 cursor-pointer items-center gap-3 rounded-lg px-2.5 py-1.5 text-sm aria-selected:bg-accent-soft aria-selected:text-accent-strong"
                        >
                          {Icon && <Icon className="size-4 shrink-0" aria-hidden="true" />}
                          <span className="min-w-0 flex-1 truncate">{command.label}</span>
                          {command.hint && (
                            <span className="max-w-[45%] shrink-0 truncate text-xs text-muted">
                              {command.hint}
                            </span>
                          )}
                        </div>
                      );
                    })}
                  </div>
                ),
            )}
          </div>
          <p role="status" className={commands.length > 0 ? 'sr-only' : 'px-4 pb-4 text-sm text-muted'}>
            {commands.length > 0
              ? t('palette.found', { count: commands.length })
              : t(busy ? 'state.loading' : 'table.noMatch')}
          </p>
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}
