// The keys, in one place.
import { Dialog } from '@tidepool/shared/ui/dialog';
import { useText, type Key } from './messages';
import { usePlainKeys } from './shortcuts';

const MAC = /Mac|iPhone|iPad/.test(navigator.userAgent);
const MOD = MAC ? '⌘' : 'Ctrl';

const KEYS: readonly [string[], Key][] = [
  [[MOD, 'K'], 'help.palette'],
  [[MOD, MAC ? '⇧' : 'Shift', 'O'], 'help.new'],
  [[MOD, 'F'], 'help.find'],
  [[MOD, '/'], 'help.help'],
  [['?'], 'help.helpPlain'],
  [['/'], 'help.write'],
  [['Enter'], 'help.send'],
  [['Shift', 'Enter'], 'help.break'],
  [['↑'], 'help.recall'],
  [['Esc'], 'help.stop'],
];

export default function Help({ onClose }: { onClose: () => void }) {
  const { t } = useText();
  const [plain, setPlain] = usePlainKeys();
  return (
    <Dialog open onClose={onClose} title={t('help.title')}>
      <dl className="divide-y divide-line">
        {KEYS.map(([keys, text]) => (
          <div key={text} className="flex items-center justify-between gap-4 py-2.5">
            <dt className="text-sm">{t(text)}</dt>
            <dd className="flex gap-1">
              {keys.map((key) => (
                <kbd
                  key={key}
                  className="min-w-7 rounded-md border border-line bg-sunken px-2 py-0.5 text-center font-sans text-xs"
                >
                  {key}
                </kbd>
              ))}
            </dd>
          </div>
        ))}
      </dl>
      <label className="mt-3 flex min-h-10 items-center gap-2.5 border-t border-line pt-3 text-sm">
        <input
          type="checkbox"
          checked={plain}
          onChange={(event) => setPlain(event.target.checked)}
          className="size-4 accent-(--accent)"
        />
        {t('help.plain')}
      </label>
    </Dialog>
  );
}
