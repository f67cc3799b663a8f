// The top of a thread: what stands before its first message, and how to get it.
import { Button } from '@tidepool/shared/ui/button';
import { LoaderCircle } from 'lucide-react';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { useText } from '../../messages';
import type { Older } from '../engine/types';

/** Its height, which does not change with what it says: the thread below stays where it is. */
export const OLDER_HEIGHT = 56;

interface OlderRowProps {
  older: Older;
  instance: string;
  onLoad: () => void;
}

export function OlderRow({ older, instance, onLoad }: OlderRowProps) {
  const { t } = useText();
  const shown: Record<Older, ReactNode> = {
    nothing: null,
    more: (
      <Button size="small" look="quiet" onClick={onLoad}>
        {t('older.more')}
      </Button>
    ),
    loading: (
      <>
        <LoaderCircle className="size-4 animate-spin" aria-hidden="true" />
        {t('older.loading')}
      </>
    ),
    failed: (
      <>
        <span className="text-danger">{t('older.failed')}</span>
        <Button size="small" className="shrink-0" onClick={onLoad}>
          {t('state.retry')}
        </Button>
      </>
    ),
    beginning: t('older.beginning'),
    history: (
      <span>
        {t('older.history')}{' '}
        <Link
          href={`/history?instance=${encodeURIComponent(instance)}`}
          className="font-medium text-accent underline underline-offset-2"
        >
          {t('older.toHistory')}
        </Link>
      </span>
    ),
  };
  return (
    <div
      role="status"
      style={{ height: OLDER_HEIGHT }}
      className="absolute inset-x-0 top-0 flex items-center justify-center gap-2 px-4 text-center text-sm text-muted [overflow-anchor:none]"
    >
      {shown[older]}
    </div>
  );
}
