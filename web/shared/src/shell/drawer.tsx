// The navigation under 768 px: hidden behind a button, opened as a drawer that holds the focus until it is closed.
import * as Dialog from '@radix-ui/react-dialog';
import { Menu, X } from 'lucide-react';
import { useState, type ReactNode } from 'react';
import { useI18n } from '../i18n/i18n';
import { Brand } from '../ui/mark';
import { Nav, type NavItem } from './nav';

const ICON_BUTTON = 'flex size-10 items-center justify-center rounded-lg text-ink hover:bg-sunken';

export function Drawer({ items, tag, foot }: { items: readonly NavItem[]; tag?: string; foot: ReactNode }) {
  const { t } = useI18n();
  const [open, setOpen] = useState(false);
  return (
    <Dialog.Root open={open} onOpenChange={setOpen}>
      <Dialog.Trigger className={`${ICON_BUTTON} -ms-2 md:hidden`} aria-label={t('app.openNavigation')}>
        <Menu className="size-5" aria-hidden="true" />
      </Dialog.Trigger>
      <Dialog.Portal>
        <Dialog.Overlay className="fixed inset-0 z-40 bg-[#000]/45 md:hidden" />
        <Dialog.Content
          aria-describedby={undefined}
          className="fixed inset-y-0 start-0 z-50 flex w-72 max-w-[85vw] flex-col gap-5 border-e border-line bg-surface p-4 shadow-high md:hidden"
        >
          <Dialog.Title className="sr-only">{t('app.navigation')}</Dialog.Title>
          <div className="flex items-center justify-between ps-1">
            <Brand tag={tag} />
            <Dialog.Close className={ICON_BUTTON} aria-label={t('app.closeNavigation')}>
              <X className="size-5" aria-hidden="true" />
            </Dialog.Close>
          </div>
          <div className="flex-1 overflow-y-auto">
            <Nav items={items} direction="column" onNavigate={() => setOpen(false)} />
          </div>
          {foot}
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  );
}
