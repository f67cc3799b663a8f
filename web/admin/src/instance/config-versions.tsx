// The older files that the platform kept on the server when it wrote the configuration anew: each with how it differs
// from today's, and a way to bring its values into the editor.
import { useQuery } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { RelativeTime } from '@tidepool/shared/i18n/time';
import { Button } from '@tidepool/shared/ui/button';
import { EmptyState } from '@tidepool/shared/ui/states';
import { ChevronRight } from 'lucide-react';
import { useId, useState } from 'react';
import { api } from '../api';
import { useFormat } from '../format';
import { useText } from '../messages';
import { ChangeList } from '../parts/change-list';
import { QueryState } from '../parts/query-state';
import type { PastConfig } from '../records';
import { takeOver, type TakenOver } from './take-over';

interface VersionsProps {
  instanceId: string;
  /** The document in the editor; null while it is none. */
  stored: string | null;
  /** Absent where the document cannot be changed. */
  onTake?: (taken: TakenOver) => void;
}

export function ConfigVersions({ instanceId, stored, onTake }: VersionsProps) {
  const { t } = useText();
  const versions = useQuery({
    queryKey: ['config', instanceId, 'versions'],
    queryFn: () =>
      unwrap(api.GET('/instances/{id}/config/versions', { params: { path: { id: instanceId } } })),
    retry: false,
  });
  const [open, setOpen] = useState<string | null>(null);
  return (
    <section>
      <h3 className="mb-2 text-sm font-semibold">{t('config.older')}</h3>
      <QueryState query={versions}>
        {({ list }) =>
          list.length === 0 ? (
            <EmptyState title={t('config.noOlder')}>{t('config.noOlderText')}</EmptyState>
          ) : (
            <ul className="divide-y divide-line rounded-lg border border-line text-sm">
              {list.map((one) => (
                <Version
                  key={one.version}
                  instanceId={instanceId}
                  version={one}
                  open={open === one.version}
                  onToggle={() => setOpen(open === one.version ? null : one.version)}
                  stored={stored}
                  onTake={onTake}
                />
              ))}
            </ul>
          )
        }
      </QueryState>
    </section>
  );
}

interface VersionProps extends VersionsProps {
  version: { version: string; replaced_at: string; bytes: number };
  open: boolean;
  onToggle: () => void;
}

function Version({ instanceId, version, open, onToggle, stored, onTake }: VersionProps) {
  const { t, locale } = useText();
  const format = useFormat();
  const id = useId();
  const [before, after] = t('config.until').split('{time}');
  return (
    <li>
      <button
        type="button"
        aria-expanded={open}
        aria-controls={open ? id : undefined}
        onClick={onToggle}
        className="flex min-h-10 w-full items-center gap-2 rounded-lg px-3 py-2 text-start hover:bg-sunken"
      >
        <ChevronRight
          className={`size-4 shrink-0 text-muted transition-transform ${open ? 'rotate-90' : ''}`}
          aria-hidden="true"
        />
        <span className="min-w-0 flex-1">
          {before}
          <RelativeTime at={version.replaced_at} />
          {after}
          <span className="block text-xs text-muted">
            {new Date(version.replaced_at).toLocaleString(locale, {
              dateStyle: 'medium',
              timeStyle: 'medium',
            })}
          </span>
        </span>
        <span className="text-muted tabular-nums">{format.bytes(version.bytes)}</span>
      </button>
      {open && (
        <div id={id} className="px-3 pt-1 pb-3">
          <Differences instanceId={instanceId} version={version.version} stored={stored} onTake={onTake} />
        </div>
      )}
    </li>
  );
}

function Differences({ instanceId, version, stored, onTake }: VersionsProps & { version: string }) {
  const past = useQuery({
    queryKey: ['config', instanceId, 'versions', version],
    queryFn: () =>
      unwrap(
        api.GET('/instances/{id}/config/versions/{version}', {
          params: { path: { id: instanceId, version } },
        }),
      ),
    retry: false,
  });
  return (
    <QueryState query={past}>{(data) => <Offer past={data} stored={stored} onTake={onTake} />}</QueryState>
  );
}

function Offer({ past, stored, onTake }: { past: PastConfig } & Omit<VersionsProps, 'instanceId'>) {
  const { t, number } = useText();
  const offered = takeOver(stored ?? '{}', past);
  if (past.changes.length === 0) return <p className="text-muted">{t('config.sameAsNow')}</p>;
  return (
    <div className="space-y-3">
      <ChangeList changes={past.changes} is={t('config.now')} should={t('config.then')} />
      {offered.left.length > 0 && (
        <p className="text-muted">{t('config.left', { count: number(offered.left.length) })}</p>
      )}
      {onTake && (
        <div className="flex flex-wrap items-center gap-3">
          <Button
            size="small"
            disabled={stored === null || offered.taken.length === 0}
            onClick={() => onTake(offered)}
          >
            {t('config.take')}
          </Button>
          <span className="min-w-0 flex-1 basis-52 text-xs text-muted">
            {t(stored === null ? 'config.takeLater' : 'config.takeHint')}
          </span>
        </div>
      )}
    </div>
  );
}
