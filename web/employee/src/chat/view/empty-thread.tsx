// An empty thread: whose it is, and a few beginnings that only fill the composer.
import { Contours } from '@tidepool/shared/ui/contours';
import type { Instance } from '../../instances-query';
import { useText, type Key } from '../../messages';

const STARTERS: readonly [Key, Key][] = [
  ['starter.summarise', 'starter.summariseText'],
  ['starter.write', 'starter.writeText'],
  ['starter.plan', 'starter.planText'],
  ['starter.explain', 'starter.explainText'],
];

export function EmptyThread({ instance, onPick }: { instance: Instance; onPick: (text: string) => void }) {
  const { t } = useText();
  return (
    <div className="flex flex-col items-center pt-[6vh] pb-6 text-center">
      <div className="relative size-28 overflow-hidden rounded-full bg-deep" aria-hidden="true">
        <Contours className="absolute inset-0 size-full scale-125 text-deep-line" />
      </div>
      <p className="mt-6 text-xl font-semibold tracking-tight">{t('chat.emptyTitle')}</p>
      <p className="mt-1 max-w-md text-sm text-muted">
        {instance.profession_name
          ? t('chat.emptyProfession', { name: instance.name, profession: instance.profession_name })
          : t('chat.emptyText', { name: instance.name })}
      </p>
      <ul className="mt-7 grid w-full max-w-xl gap-2 text-start sm:grid-cols-2">
        {STARTERS.map(([title, text]) => (
          <li key={title}>
            <button
              type="button"
              onClick={() => onPick(`${t(text)} `)}
              className="flex h-full w-full flex-col rounded-xl border border-line bg-surface px-4 py-3 text-start hover:border-control hover:bg-sunken"
            >
              <span className="block text-sm font-medium">{t(title)}</span>
              <span className="block text-sm text-muted">{t(text).replace(/[:：]$/, '')}…</span>
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}
