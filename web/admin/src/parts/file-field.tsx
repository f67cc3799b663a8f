// A labelled choice of a text file, such as CSV, which is read at once.
import { useId } from 'react';
import { readFile, type FileProblem } from './text-file';

interface FileFieldProps {
  label: string;
  hint: string;
  onRead: (read: { text: string } | { problem: FileProblem }) => void;
}

export function FileField({ label, hint, onRead }: FileFieldProps) {
  const id = useId();
  const choose = async (file: File | undefined) => {
    if (file) onRead(await readFile(file));
  };
  return (
    <div>
      <label htmlFor={id} className="mb-1.5 block text-sm font-medium">
        {label}
      </label>
      <input
        id={id}
        type="file"
        accept=".csv,.tsv,.txt,text/csv,text/tab-separated-values,text/plain"
        aria-describedby={`${id}-limit`}
        className="w-full text-sm file:me-3 file:min-h-9 file:rounded-lg file:border file:border-control/60 file:bg-surface file:px-3 file:text-sm file:text-ink"
        onChange={(event) => void choose(event.target.files?.[0])}
      />
      <p id={`${id}-limit`} className="mt-1.5 text-sm text-muted">
        {hint}
      </p>
    </div>
  );
}
