// Import of employees from CSV in three steps: choose a file, see what each line would do, and see what each line did. The
// server reads the file, so that the preview and the import cannot differ.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { errorText } from '@tidepool/shared/api/error-text';
import { Button } from '@tidepool/shared/ui/button';
import { Dialog } from '@tidepool/shared/ui/dialog';
import { Notice } from '@tidepool/shared/ui/notice';
import { outcomeOf } from '@tidepool/shared/ui/outcome';
import { TextArea } from '@tidepool/shared/ui/text-area';
import { useState } from 'react';
import { api } from '../api';
import { FileField } from '../parts/file-field';
import type { FileProblem } from '../parts/text-file';
import type { ImportResult } from '../records';
import { ImportLines } from './import-lines';
import { useImportText, type ImportKey } from './import-texts';

/** What an import changes: accounts, and with a profession also pools, assistants and tasks. */
const CHANGES = ['users', 'pool', 'pool-entries', 'pool-claims', 'instances', 'tasks'];

const send = (csv: string, dryRun: boolean) =>
  unwrap(api.POST('/users/import', { body: { csv, dry_run: dryRun } }));

export function ImportUsers({ onClose }: { onClose: () => void }) {
  const i18n = useImportText();
  const { t, number } = i18n;
  const client = useQueryClient();
  const [text, setText] = useState('');
  const [shown, setShown] = useState<ImportResult | null>(null);
  // The text may hold passwords: nothing of it stays behind when the dialog is closed.
  const preview = useMutation({
    mutationFn: (csv: string) => send(csv, true),
    gcTime: 0,
    onSuccess: (result) => {
      run.reset();
      setShown(result);
    },
  });
  const run = useMutation({
    mutationFn: () => send(text, false),
    gcTime: 0,
    onSuccess: (result) => {
      setShown(result);
      setText('');
    },
    // Also after a failure: some lines may have been done.
    onSettled: () => {
      for (const root of CHANGES) void client.invalidateQueries({ queryKey: [root] });
    },
  });
  const step = shown === null ? 'choose' : shown.dry_run ? 'preview' : 'result';
  const leads: Record<typeof step, ImportKey> = {
    choose: 'import.chooseLead',
    preview: 'import.previewLead',
    result: 'import.resultLead',
  };
  const affected = shown ? shown.summary.create + shown.summary.update : 0;
  const back = () => {
    run.reset();
    setShown(null);
  };
  return (
    <Dialog
      open
      onClose={onClose}
      title={t('users.import')}
      lead={t(leads[step])}
      width="wide"
      foot={
        step === 'choose' ? (
          <>
            <Button onClick={onClose}>{t('dialog.cancel')}</Button>
            <Button
              key="preview"
              look="primary"
              busy={preview.isPending}
              disabled={text.trim() === ''}
              onClick={() => preview.mutate(text)}
            >
              {t('import.preview')}
            </Button>
          </>
        ) : step === 'preview' ? (
          <>
            <Button disabled={run.isPending} onClick={back}>
              {t('import.back')}
            </Button>
            {run.isError ? (
              <Button
                key="again"
                look="primary"
                busy={preview.isPending}
                onClick={() => preview.mutate(text)}
              >
                {t('import.previewAgain')}
              </Button>
            ) : (
              <Button
                key="run"
                look="primary"
                busy={run.isPending}
                disabled={affected === 0}
                onClick={() => run.mutate()}
              >
                {t('import.run')} ({number(affected)})
              </Button>
            )}
          </>
        ) : (
          <Button key="close" look="primary" onClick={onClose}>
            {t('dialog.close')}
          </Button>
        )
      }
    >
      <div className="space-y-4">
        {step === 'choose' && (
          <Choose
            text={text}
            setText={(next) => {
              preview.reset();
              setText(next);
            }}
            onFile={(next) => {
              setText(next);
              preview.mutate(next);
            }}
          />
        )}
        {preview.isError && (
          <Notice tone="error">{errorText(preview.error, i18n).replace(/^csv: /, '')}</Notice>
        )}
        {run.isError && (
          <Notice tone={outcomeOf(run.error) === 'unknown' ? 'warning' : 'error'}>
            {outcomeOf(run.error) === 'unknown' ? t('import.unknown') : errorText(run.error, i18n)}
          </Notice>
        )}
        {/* Each answer is a list of its own, which begins with its summary. */}
        {shown && <ImportLines key={shown.dry_run ? preview.submittedAt : 'result'} result={shown} />}
      </div>
    </Dialog>
  );
}

interface ChooseProps {
  text: string;
  setText: (text: string) => void;
  /** A file was read. */
  onFile: (text: string) => void;
}

function Choose({ text, setText, onFile }: ChooseProps) {
  const { t } = useImportText();
  const [problem, setProblem] = useState<FileProblem | null>(null);
  return (
    <>
      <FileField
        label={t('import.file')}
        hint={t('import.limit')}
        onRead={(read) => {
          setProblem('problem' in read ? read.problem : null);
          if ('text' in read) onFile(read.text);
        }}
      />
      {problem && <Notice tone="error">{t(`import.${problem}`)}</Notice>}
      <TextArea
        label={t('import.text')}
        hint={`${t('import.hint')} ${t('import.hintQuota')}`}
        mono
        rows={5}
        placeholder={'email,name,department,quota,profession'}
        value={text}
        onChange={(event) => {
          setProblem(null);
          setText(event.target.value);
        }}
      />
    </>
  );
}
