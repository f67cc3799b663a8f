// The recovery codes, shown once: to copy, to print, and to confirm that they are saved.
import { Copy, Printer } from 'lucide-react';
import { useEffect, useRef, useState } from 'react';
import { copyText } from '../../clipboard';
import { Button } from '../../ui/button';
import { Notice } from '../../ui/notice';
import './print.css';
import { useTexts } from './texts';

interface RecoveryCodesProps {
  codes: readonly string[];
  /** Whose they are, for the printed page. */
  email?: string;
  onSaved: () => void;
}

export function RecoveryCodes({ codes, email, onSaved }: RecoveryCodesProps) {
  const t = useTexts();
  const [copied, setCopied] = useState<'yes' | 'failed' | null>(null);
  const title = useRef<HTMLHeadingElement>(null);
  useEffect(() => title.current?.focus(), []);
  return (
    <div className="space-y-4">
      <h3 ref={title} tabIndex={-1} className="font-semibold outline-none">
        {t('codes.title')}
      </h3>
      <p className="text-sm text-muted">{t('codes.lead')}</p>
      <div data-printed>
        {email !== undefined && (
          <p className="hidden font-semibold print:block">{t('codes.printTitle', { email })}</p>
        )}
        <ul
          aria-label={t('codes.title')}
          className="grid grid-cols-1 gap-x-6 gap-y-1.5 rounded-lg border border-line bg-sunken p-4 font-mono text-sm sm:grid-cols-2"
        >
          {codes.map((code) => (
            <li key={code}>{code}</li>
          ))}
        </ul>
      </div>
      {copied === 'failed' && <Notice tone="error">{t('codes.copyFailed')}</Notice>}
      <div className="flex flex-wrap gap-2">
        <Button
          onClick={() => void copyText(codes.join('\n')).then((done) => setCopied(done ? 'yes' : 'failed'))}
        >
          <Copy className="size-4" aria-hidden="true" />
          <span role="status">{t(copied === 'yes' ? 'codes.copied' : 'codes.copy')}</span>
        </Button>
        <Button onClick={() => window.print()}>
          <Printer className="size-4" aria-hidden="true" />
          {t('codes.print')}
        </Button>
        <Button look="primary" onClick={onSaved}>
          {t('codes.saved')}
        </Button>
      </div>
    </div>
  );
}
