// What assistants on a server may take of it, where their professions and they themselves say nothing else.
import { lazyPart } from '@tidepool/shared/lazy-part';
import { Button } from '@tidepool/shared/ui/button';
import { Facts, Panel } from '@tidepool/shared/ui/panel';
import { Gauge } from 'lucide-react';
import { Suspense, useState } from 'react';
import { LIMITS, PLATFORM } from '../cell/limits';
import { useLimitText } from '../cell/limit-text';
import { useServerLimits } from '../cell/queries';
import { useMay } from '../me';
import { useText } from '../messages';

// Forms are loaded when they are opened: a page's first load has a limit.
const LimitsForm = lazyPart(() => import('./limits-form'));

export function ServerLimits({ id, name }: { id: string; name: string }) {
  const { t } = useText();
  const limitText = useLimitText();
  const limits = useServerLimits(id);
  const mayManage = useMay('servers.manage');
  const [editing, setEditing] = useState(false);
  return (
    <Panel
      title={t('cell.serverLimits')}
      icon={<Gauge aria-hidden="true" />}
      query={limits}
      action={
        limits.data &&
        mayManage && (
          <Button size="small" onClick={() => setEditing(true)}>
            {t('cell.change')}
          </Button>
        )
      }
    >
      {(values) => (
        <>
          <p className="mb-3 text-sm text-muted">{t('cell.serverLimitsText')}</p>
          <Facts
            rows={LIMITS.map((limit) => {
              const set = values[limit];
              return {
                name: t(`cell.${limit}`),
                value:
                  set == null ? (
                    <>
                      {limitText(limit, PLATFORM[limit])}{' '}
                      <span className="text-sm text-muted">{t('cell.origin.platform')}</span>
                    </>
                  ) : (
                    limitText(limit, set)
                  ),
              };
            })}
          />
          {editing && (
            <Suspense fallback={null}>
              <LimitsForm id={id} name={name} values={values} onClose={() => setEditing(false)} />
            </Suspense>
          )}
        </>
      )}
    </Panel>
  );
}
