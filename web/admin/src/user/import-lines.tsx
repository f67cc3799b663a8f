// What each line of an import does, or did, with a summary. It takes the focus when it appears, so that a screen reader
// begins with the summary, and a second press of Enter does not start the import.
import { Badge, type Tone } from '@tidepool/shared/ui/badge';
import { Notice } from '@tidepool/shared/ui/notice';
import { SelectChip } from '@tidepool/shared/ui/select';
import { useEffect, useRef, useState } from 'react';
import { oneOf, type ImportLine, type ImportResult } from '../records';
import { effectTexts } from './import-effect';
import { useImportText } from './import-texts';

const ACTIONS = [
  'create',
  'update',
  'unchanged',
  'refuse',
] as const satisfies readonly ImportLine['action'][];

const TONES: Record<ImportLine['action'], Tone> = {
  create: 'good',
  update: 'busy',
  unchanged: 'none',
  refuse: 'bad',
};

export function ImportLines({ result }: { result: ImportResult }) {
  const { t, number } = useImportText();
  const [shown, setShown] = useState<string>('');
  const head = useRef<HTMLParagraphElement>(null);
  useEffect(() => head.current?.focus(), []);
  const { summary, lines, dry_run: dryRun } = result;
  const action = oneOf(shown, ACTIONS);
  const counts = Object.fromEntries(Object.entries(summary).map(([name, count]) => [name, number(count)]));
  return (
    <div className="space-y-3">
      <p ref={head} tabIndex={-1} role="status" className="text-sm font-medium outline-none">
        {lines.length === 0 ? t('import.noLines') : t('import.summary', counts)}
        {summary.assign > 0 &&
          ` ${t(dryRun ? 'import.willAssign' : 'import.assigned', { count: number(summary.assign) })}`}
      </p>
      {result.ignored_columns.length > 0 && (
        <Notice tone="warning">
          <span className="wrap-anywhere">
            {t('import.ignored', { columns: result.ignored_columns.join(', ') })}
          </span>
        </Notice>
      )}
      {!dryRun && summary.refuse > 0 && <Notice tone="info">{t('import.correct')}</Notice>}
      {lines.length > 0 && (
        <>
          <SelectChip
            label={t('import.show')}
            value={shown}
            onChange={(event) => setShown(event.target.value)}
            choices={[
              { value: '', label: `${t('import.all')} (${number(lines.length)})` },
              ...ACTIONS.map((value) => ({
                value,
                label: `${t(`import.${value}`)} (${number(summary[value])})`,
              })),
            ]}
          />
          <Table lines={lines.filter((line) => action === undefined || line.action === action)} />
        </>
      )}
    </div>
  );
}

/** Three narrow columns: they fit a telephone without scrolling sideways. */
function Table({ lines }: { lines: readonly ImportLine[] }) {
  const { t, number } = useImportText();
  return (
    <table className="w-full table-fixed border-collapse text-sm">
      <caption className="sr-only">{t('import.effect')}</caption>
      <thead>
        <tr className="border-b border-line text-start text-muted">
          <th scope="col" className="w-12 py-2 pe-2 text-start font-medium">
            {t('import.line')}
          </th>
          <th scope="col" className="w-2/5 py-2 pe-2 text-start font-medium">
            {t('users.email')}
          </th>
          <th scope="col" className="py-2 text-start font-medium">
            {t('import.effect')}
          </th>
        </tr>
      </thead>
      <tbody className="divide-y divide-line">
        {lines.map((line) => (
          <tr key={line.line} className="align-top">
            <td className="py-2 pe-2 text-muted tabular-nums">{number(line.line)}</td>
            <td className="py-2 pe-2 wrap-anywhere">{line.email || '–'}</td>
            <td className="py-2 wrap-anywhere">
              <Badge tone={TONES[line.action]}>{t(`import.${line.action}`)}</Badge>
              {effectTexts(line, t, number).map((text) => (
                <span key={text} className={`mt-1 block ${line.refusal ? 'text-danger' : 'text-muted'}`}>
                  {text}
                </span>
              ))}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
