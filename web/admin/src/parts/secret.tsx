// A secret, masked; it is fetched when somebody asks to see it, and forgotten again after half a minute.
import { useMutation } from '@tanstack/react-query';
import { errorText } from '@tidepool/shared/api/error-text';
import { toast } from '@tidepool/shared/ui/toast';
import { Copy, Eye, EyeOff } from 'lucide-react';
import { useEffect, useState } from 'react';
import { useText } from '../messages';

const SHOWN_MS = 30_000;
const TOOL = 'flex size-8 items-center justify-center rounded-lg text-muted hover:bg-sunken hover:text-ink';

export function Secret({
  label,
  mask,
  reveal,
}: {
  label: string;
  mask: string;
  reveal: () => Promise<string>;
}) {
  const i18n = useText();
  const { t } = i18n;
  const [shown, setShown] = useState<string | null>(null);
  const fetching = useMutation({
    mutationFn: reveal,
    onSuccess: setShown,
    onError: (error) => toast('error', errorText(error, i18n)),
  });
  useEffect(() => {
    if (shown === null) return;
    const timer = setTimeout(() => setShown(null), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [shown]);
  const Icon = shown === null ? Eye : EyeOff;
  return (
    <span className="flex items-center gap-1">
      <code className="min-w-0 flex-1 font-mono text-sm break-all">{shown ?? mask}</code>
      <button
        type="button"
        className={TOOL}
        aria-label={t(shown === null ? 'secret.show' : 'secret.hide', { name: label })}
        onClick={() => (shown === null ? fetching.mutate() : setShown(null))}
      >
        <Icon className="size-4" aria-hidden="true" />
      </button>
      {shown !== null && (
        <button
          type="button"
          className={TOOL}
          aria-label={t('secret.copy', { name: label })}
          onClick={() =>
            void navigator.clipboard.writeText(shown).then(() => toast('success', t('secret.copied')))
          }
        >
          <Copy className="size-4" aria-hidden="true" />
        </button>
      )}
    </span>
  );
}
