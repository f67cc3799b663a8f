// What opens over a page: a dialog in the middle and a panel from the side. Both hold the focus, close on Esc and give
// the focus back to where it came from. All stand on one level, so that what opens later dims what is open already.
import * as Radix from '@radix-ui/react-dialog';
import { X } from 'lucide-react';
import type { ReactNode } from 'react';
import { useI18n } from '../i18n/i18n';

interface OverlayProps {
  open: boolean;
  onClose: () => void;
  title: string;
  /** One line below the title. */
  lead?: ReactNode;
  children: ReactNode;
}

interface DialogProps extends OverlayProps {
  width?: 'narrow' | 'wide';
  /** Buttons at the end; they stay in view while the content scrolls. */
  foot?: ReactNode;
  /** Nothing in it takes the focus, so that the content itself must, or nobody could scroll it by keyboard. */
  isText?: boolean;
}

/** A dialog's first field, or the dialog itself; not its close button, which comes first by chance. */
function focusInside(event: Event) {
  event.preventDefault();
  if (!(event.target instanceof HTMLElement)) return;
  const field = event.target.querySelector<HTMLElement>(
    '[data-body] :is(input:not([type=hidden]), select, textarea)',
  );
  (field ?? event.target).focus();
}

const CLOSE =
  'flex size-9 shrink-0 items-center justify-center rounded-lg text-muted hover:bg-sunken hover:text-ink';

export function Dialog({
  open,
  onClose,
  title,
  lead,
  width = 'narrow',
  foot,
  isText,
  children,
}: DialogProps) {
  return (
    <Radix.Root open={open} onOpenChange={(next) => next || onClose()}>
      <Radix.Portal>
        <Radix.Overlay className="fade-in fixed inset-0 z-50 bg-[#000]/45" />
        <Radix.Content
          aria-describedby={undefined}
          onOpenAutoFocus={focusInside}
          className={`rise-in fixed inset-x-3 top-1/2 z-50 mx-auto flex max-h-[calc(100dvh-2rem)] -translate-y-1/2 flex-col rounded-xl border border-line bg-surface shadow-high outline-none ${width === 'wide' ? 'max-w-3xl' : 'max-w-lg'}`}
        >
          <Head title={title} lead={lead} />
          <div
            data-body
            // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reachable by keyboard.
            tabIndex={isText ? 0 : undefined}
            className="min-h-0 flex-1 overflow-y-auto px-5 py-4 -outline-offset-2"
          >
            {children}
          </div>
          {foot && (
            <div className="flex flex-wrap justify-end gap-2 border-t border-line px-5 py-3">{foot}</div>
          )}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

interface SidePanelProps extends OverlayProps {
  /** Stands above the title: what kind of thing this is, its state. */
  mark?: ReactNode;
  /** Tabs, kept in view while the content scrolls. */
  bar?: ReactNode;
  actions?: ReactNode;
}

export function SidePanel({ open, onClose, title, lead, mark, bar, actions, children }: SidePanelProps) {
  return (
    <Radix.Root open={open} onOpenChange={(next) => next || onClose()}>
      <Radix.Portal>
        <Radix.Overlay className="fade-in fixed inset-0 z-50 bg-[#000]/35" />
        <Radix.Content
          aria-describedby={undefined}
          onOpenAutoFocus={(event) => {
            event.preventDefault();
            if (event.target instanceof HTMLElement) event.target.focus();
          }}
          className="slide-in fixed inset-y-0 end-0 z-50 flex w-full max-w-3xl flex-col border-s border-line bg-surface shadow-high outline-none"
        >
          <Head title={title} lead={lead} mark={mark} actions={actions} plain={bar !== undefined} />
          {bar}
          <div className="min-h-0 flex-1 overflow-y-auto px-5 py-5">{children}</div>
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

interface HeadProps {
  title: string;
  lead?: ReactNode;
  mark?: ReactNode;
  actions?: ReactNode;
  plain?: boolean;
}

function Head({ title, lead, mark, actions, plain = false }: HeadProps) {
  const { t } = useI18n();
  return (
    <div
      className={`relative flex flex-wrap items-start gap-x-3 gap-y-2 px-5 pt-4 pb-3 pe-14 ${plain ? '' : 'border-b border-line'}`}
    >
      <div className="min-w-0 flex-1 basis-48">
        {mark}
        <Radix.Title className="text-lg leading-snug font-semibold">{title}</Radix.Title>
        {lead && <div className="mt-0.5 text-sm text-muted">{lead}</div>}
      </div>
      {actions && <div className="flex items-center gap-2">{actions}</div>}
      <Radix.Close className={`${CLOSE} absolute end-4 top-3`} aria-label={t('dialog.close')}>
        <X className="size-5" aria-hidden="true" />
      </Radix.Close>
    </div>
  );
}
