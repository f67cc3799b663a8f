// Copies a text and says so for a moment. The clipboard is refused on plain http pages; then the old way is taken.
import { Check, Copy } from 'lucide-react';
import { useEffect, useState } from 'react';
import { useText } from '../messages';

export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement('textarea');
    area.value = text;
    area.className = 'sr-only';
    document.body.append(area);
    area.select();
    // The only way where the page is not served over TLS.
    // eslint-disable-next-line @typescript-eslint/no-deprecated
    const done = document.execCommand('copy');
    area.remove();
    return done;
  }
}

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
