// The server's version in a corner, and the offer to reload when it changes while the page is open.
import { useState } from 'react';
import { useOptions } from '../account/use-options';
import { useI18n } from '../i18n/i18n';
import { Button } from '../ui/button';

export function VersionTag() {
  const { t } = useI18n();
  const version = useOptions().data?.version;
  if (version === undefined) return null;
  return (
    <span className="text-xs text-muted" title={t('app.version', { version })}>
      v{version}
    </span>
  );
}

export function NewVersion() {
  const { t } = useI18n();
  const version = useOptions().data?.version;
  // The first version seen is the one that this page was loaded from; "later" moves the mark to the new one.
  const [known, setKnown] = useState(version);
  if (known === undefined && version !== undefined) setKnown(version);
  const changed = version !== undefined && known !== undefined && version !== known;
  return (
    <div
      role="status"
      className="fixed inset-x-4 bottom-4 z-30 flex justify-center empty:hidden sm:justify-end"
    >
      {changed && (
        <div className="flex flex-wrap items-center gap-3 rounded-xl border border-line bg-surface py-2.5 ps-4 pe-2.5 text-sm shadow-high">
          {t('app.newVersion')}
          <span className="flex gap-1">
            <Button look="quiet" onClick={() => setKnown(version)}>
              {t('app.later')}
            </Button>
            <Button look="primary" onClick={() => window.location.reload()}>
              {t('app.reload')}
            </Button>
          </span>
        </div>
      )}
    </div>
  );
}
