// The files that are chosen for the next prompt: checked against what the assistant takes before anything is sent.
import { useCallback, useState } from 'react';
import { useText } from '../messages';
import { contentOf, fileSize, fitting } from './attach';
import type { Attachment, AttachmentPolicy } from './engine/types';

export interface ChosenFiles {
  files: readonly File[];
  /** Why a file was not taken. */
  problem: string | null;
  add: (more: readonly File[]) => void;
  remove: (index: number) => void;
  /** Reads them for sending; null when one cannot be read any more, which is then said. */
  read: () => Promise<Attachment[] | null>;
  clear: () => void;
  /** Says that the files of an earlier prompt have to be chosen again. */
  missing: () => void;
}

export function useFiles(policy: AttachmentPolicy | null): ChosenFiles {
  const { t, locale } = useText();
  const [files, setFiles] = useState<readonly File[]>([]);
  const [problem, setProblem] = useState<string | null>(null);
  const missing = useCallback(() => setProblem(t('files.missing')), [t]);
  return {
    files,
    problem,
    missing,
    add: (more) => {
      if (policy === null) return;
      const { taken, refused } = fitting(files, more, policy);
      setFiles([...files, ...taken]);
      const texts = refused.map(({ name, limit, together }) =>
        t(together ? 'files.tooMuch' : 'files.tooLarge', { name, limit: fileSize(limit, locale) }),
      );
      setProblem(texts.length > 0 ? texts.join(' ') : null);
    },
    remove: (index) => {
      setFiles(files.filter((_file, at) => at !== index));
      setProblem(null);
    },
    read: async () => {
      try {
        return await Promise.all(files.map(contentOf));
      } catch {
        setProblem(t('files.unreadable'));
        return null;
      }
    },
    clear: () => {
      setFiles([]);
      setProblem(null);
    },
  };
}
