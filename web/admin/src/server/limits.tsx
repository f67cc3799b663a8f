// What assistants on a server may take of it, where their professions and they themselves say nothing else.
import { useQueryClient } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { Button } from '@tidepool/shared/ui/button';
import { Facts, Panel } from '@tidepool/shared/ui/panel';
import { Gauge } from 'lucide-react';
import { useState } from 'react';
import { api } from '../api';
import { LIMITS, PLATFORM } from '../cell/limits';
import { LimitsDialog, useLimitText } from '../cell/limits-dialog';
import { useServerLimits } from '../cell/queries';
import { useMay } from '../me';
import { useText } from '../messages';

export function ServerLimits({ id, name }: { id: string; name: string }) {
  const { t } = useText();
  const client = useQueryClient();
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
            <LimitsDialog
              name={name}
              lead={t('cell.serverLimitsLead')}
              values={values}
              otherwise={(limit) => String(PLATFORM[limit])}
              save={(body) => unwrap(api.PUT('/servers/{id}/limits', { params: { path: { id } }, body }))}
              onDone={(saved) => {
                client.setQueryData(['cell', 'server', id], saved);
                for (const root of ['cell', 'tasks']) void client.invalidateQueries({ queryKey: [root] });
              }}
              onClose={() => setEditing(false)}
            />
          )}
        </>
      )}
    </Panel>
  );
}
