// Copies a text and says so for a moment.
import { copyText } from '@tidepool/shared/clipboard';
import { Check, Copy } from 'lucide-react';
import { useEffect, useState } from 'react';
import { useText } from '../messages';

export function CopyButton({
  text,
  label,
  showLabel = false,
}: {
  text: string;
  label: string;
  showLabel?: boolean;
}) {
  const { t } = useText();
  const [done, setDone] = useState(false);
  useEffect(() => {
    if (!done) return;
    const timer = setTimeout(() => setDone(false), 1800);
    return () => clearTimeout(timer);
  }, [done]);
  const Icon = done ? Check : Copy;
  return (
    <button
      type="button"
      className="flex min-h-8 min-w-8 items-center justify-center gap-1.5 rounded-md px-1.5 text-xs text-muted hover:bg-sunken hover:text-ink"
      aria-label={label}
      title={label}
      onClick={() => void copyText(text).then(setDone)}
    >
      <Icon className="size-4" aria-hidden="true" />
      {showLabel && <span aria-hidden="true">{t(done ? 'copy.done' : 'copy.do')}</span>}
      <span role="status" className="sr-only">
        {done ? t('copy.done') : ''}
      </span>
    </button>
  );
}
