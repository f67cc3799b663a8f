// A secret, masked. It is fetched when somebody asks to see or copy it, which is recorded, and kept here alone: it is
// forgotten after a minute, and when what shows it closes.
import { errorText } from '@tidepool/shared/api/error-text';
import { copyText } from '@tidepool/shared/clipboard';
import { toast } from '@tidepool/shared/ui/toast';
import { Copy, Eye, EyeOff } from 'lucide-react';
import { useEffect, useState } from 'react';
import { useText } from '../messages';

const SHOWN_MS = 60_000;
const TOOL =
  'flex size-8 shrink-0 items-center justify-center rounded-lg text-muted hover:bg-sunken hover:text-ink disabled:opacity-50';

interface SecretProps {
  label: string;
  mask: string;
  /** Not a query: its cache would keep the secret. Absent for those who may not see it. */
  reveal?: () => Promise<string>;
}

export function Secret({ label, mask, reveal }: SecretProps) {
  const i18n = useText();
  const { t } = i18n;
  const [shown, setShown] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    if (shown === null) return;
    const timer = setTimeout(() => setShown(null), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [shown]);

  if (reveal === undefined) return <code className="font-mono text-sm break-all">{mask}</code>;

  const withSecret = async (give: (secret: string) => unknown) => {
    setBusy(true);
    try {
      await give(shown ?? (await reveal()));
    } catch (error) {
      toast('error', errorText(error, i18n));
    } finally {
      setBusy(false);
    }
  };
  const copy = async (secret: string) => {
    const done = await copyText(secret);
    toast(done ? 'success' : 'error', t(done ? 'secret.copied' : 'secret.notCopied'));
  };
  const Icon = shown === null ? Eye : EyeOff;
  return (
    <>
      <span className="flex items-center gap-1">
        <code className="min-w-0 flex-1 font-mono text-sm break-all">{shown ?? mask}</code>
        <button
          type="button"
          className={TOOL}
          disabled={busy}
          aria-label={t(shown === null ? 'secret.show' : 'secret.hide', { name: label })}
          title={shown === null ? t('secret.recorded') : undefined}
          onClick={() => (shown === null ? void withSecret(setShown) : setShown(null))}
        >
          <Icon className="size-4" aria-hidden="true" />
        </button>
        <button
          type="button"
          className={TOOL}
          disabled={busy}
          aria-label={t('secret.copy', { name: label })}
          title={shown === null ? t('secret.recorded') : undefined}
          onClick={() => void withSecret(copy)}
        >
          <Copy className="size-4" aria-hidden="true" />
        </button>
      </span>
      {shown !== null && (
        <span className="block text-xs text-muted" role="status">
          {t('secret.shown')}
        </span>
      )}
    </>
  );
}
