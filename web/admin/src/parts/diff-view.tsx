// Two texts compared, with the unchanged parts folded to a few lines around each change.
import { diffLines, type DiffLine } from '@tidepool/shared/ui/diff';
import { useText } from '../messages';

const AROUND = 3;
const LOOKS = { same: '', removed: 'bg-danger-soft text-danger', added: 'bg-success-soft text-success' };
const SIGNS = { same: ' ', removed: '−', added: '+' };

export function DiffView({ before, after }: { before: string; after: string }) {
  const { t } = useText();
  const lines = diffLines(before, after);
  const changed = lines
    .map((line, index) => (line.kind === 'same' ? -1 : index))
    .filter((index) => index >= 0);
  if (changed.length === 0) return <p className="text-sm text-muted">{t('diff.none')}</p>;
  const near = (index: number) => changed.some((at) => Math.abs(at - index) <= AROUND);
  const shown: ({ line: DiffLine; index: number } | { gap: number; index: number })[] = [];
  lines.forEach((line, index) => {
    const last = shown.at(-1);
    if (near(index)) shown.push({ line, index });
    else if (last && 'gap' in last) last.gap += 1;
    else shown.push({ gap: 1, index });
  });
  return (
    <div
      role="region"
      aria-label={t('diff.title')}
      // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reachable by keyboard.
      tabIndex={0}
      className="max-h-80 overflow-auto rounded-lg border border-line bg-sunken py-2 font-mono text-xs"
    >
      {shown.map((part) =>
        'gap' in part ? (
          <p key={part.index} className="px-3 py-0.5 text-muted">
            ⋯ {t('diff.unchanged', { count: part.gap })}
          </p>
        ) : (
          <p key={part.index} className={`px-3 whitespace-pre-wrap ${LOOKS[part.line.kind]}`}>
            <span aria-hidden="true" className="inline-block w-4 select-none">
              {SIGNS[part.line.kind]}
            </span>
            {part.line.kind !== 'same' && <span className="sr-only">{t(`diff.${part.line.kind}`)}: </span>}
            {part.line.text}
          </p>
        ),
      )}
    </div>
  );
}
