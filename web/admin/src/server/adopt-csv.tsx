// Fills in the e-mails of gateways that are about to be adopted from a table: a file, or pasted lines. It says how many got one and
// which lines could not be used.
import { Button } from '@tidepool/shared/ui/button';
import { Notice } from '@tidepool/shared/ui/notice';
import { TextArea } from '@tidepool/shared/ui/text-area';
import { useEffect, useRef, useState } from 'react';
import { FileField } from '../parts/file-field';
import type { FileProblem } from '../parts/text-file';
import { useAdoptText, type AdoptKey } from './adopt-texts';
import { matchCsv, type Adoptee, type LeftLine, type Matches } from './match-csv';

/** More lines than this are only counted. */
const MOST_SHOWN = 20;

const FILE_PROBLEMS: Record<FileProblem, AdoptKey> = {
  tooLarge: 'adopt.csvTooLarge',
  notText: 'adopt.csvNotText',
};

interface AdoptCsvProps {
  adoptees: readonly Adoptee[];
  /** E-mails by the key of their gateway. */
  onEmails: (emails: ReadonlyMap<string, string>) => void;
}

export function AdoptCsv({ adoptees, onEmails }: AdoptCsvProps) {
  const { t, number } = useAdoptText();
  const [text, setText] = useState('');
  const [problem, setProblem] = useState<string | null>(null);
  const [matches, setMatches] = useState<Matches | null>(null);
  const change = (next: string) => {
    setText(next);
    setProblem(null);
    setMatches(null);
  };
  const apply = (table: string) => {
    change(table);
    const result = matchCsv(table, adoptees);
    if ('problem' in result) {
      setProblem(t(`adopt.csvProblem.${result.problem}`, { line: number(result.line) }));
      return;
    }
    setMatches(result);
    onEmails(result.emails);
  };
  return (
    <details className="rounded-lg border border-line p-3">
      <summary className="cursor-pointer rounded text-sm font-medium">{t('adopt.csv')}</summary>
      <div className="mt-3 space-y-3">
        <FileField
          label={t('adopt.csvFile')}
          hint={t('adopt.csvLimit')}
          onRead={(read) => {
            if ('text' in read) apply(read.text);
            else {
              change('');
              setProblem(t(FILE_PROBLEMS[read.problem]));
            }
          }}
        />
        <TextArea
          label={t('adopt.csvText')}
          hint={t('adopt.csvHint')}
          mono
          rows={4}
          placeholder={'user,email\nada,ada@example.com'}
          value={text}
          onChange={(event) => change(event.target.value)}
        />
        <Button size="small" disabled={text.trim() === ''} onClick={() => apply(text)}>
          {t('adopt.csvApply')}
        </Button>
        {problem !== null && <Notice tone="error">{problem}</Notice>}
        {matches && <Report matches={matches} all={adoptees.length} />}
      </div>
    </details>
  );
}

function Report({ matches, all }: { matches: Matches; all: number }) {
  const { t, number } = useAdoptText();
  const box = useRef<HTMLDivElement>(null);
  // On a phone it may be below what is in sight.
  useEffect(() => box.current?.scrollIntoView({ block: 'nearest' }), [matches]);
  const { emails, left } = matches;
  const lineText = ({ line, name, why }: LeftLine) =>
    name === ''
      ? t('adopt.csvLine.unnamed', { line: number(line) })
      : t(`adopt.csvLine.${why}`, { line: number(line), name });
  return (
    <div ref={box}>
      <Notice tone={left.length === 0 ? 'success' : 'warning'}>
        <p className="font-medium">{t('adopt.csvDone', { count: number(emails.size), all: number(all) })}</p>
        {left.length > 0 && (
          <>
            <p>{t('adopt.csvLeft', { count: number(left.length) })}</p>
            <ul className="list-disc ps-5">
              {left.slice(0, MOST_SHOWN).map((one) => (
                <li key={one.line} className="wrap-anywhere">
                  {lineText(one)}
                </li>
              ))}
              {left.length > MOST_SHOWN && (
                <li>{t('adopt.csvMore', { count: number(left.length - MOST_SHOWN) })}</li>
              )}
            </ul>
          </>
        )}
      </Notice>
    </div>
  );
}
