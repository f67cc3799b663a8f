// What the assistants of a profession's pool may take of their servers.
import { useQueryClient } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { Button } from '@tidepool/shared/ui/button';
import { Facts } from '@tidepool/shared/ui/panel';
import { useState } from 'react';
import { api } from '../api';
import { LIMITS } from '../cell/limits';
import { useLimitText } from '../cell/limit-text';
import { LimitsDialog } from '../cell/limits-dialog';
import { useProfessionLimits } from '../cell/queries';
import { useMay } from '../me';
import { useText } from '../messages';
import { QueryState } from '../parts/query-state';
import type { LimitValues, Profession } from '../records';

interface ProfessionLimitsProps {
  profession: Profession;
  values: LimitValues;
  onClose: () => void;
}

export function ProfessionLimits({ profession, values, onClose }: ProfessionLimitsProps) {
  const { t } = useText();
  const client = useQueryClient();
  const { id, name } = profession;
  return (
    <LimitsDialog
      name={name}
      lead={t('cell.professionLimitsLead')}
      values={values}
      // Each of its assistants may be on another server.
      otherwise={() => t('cell.asServer')}
      save={(body) => unwrap(api.PUT('/professions/{id}/limits', { params: { path: { id } }, body }))}
      onDone={(saved) => {
        client.setQueryData(['cell', 'profession', id], saved);
        for (const root of ['cell', 'tasks']) void client.invalidateQueries({ queryKey: [root] });
      }}
      onClose={onClose}
    />
  );
}

/** In the profession's own form: what is set, and the way to change it. */
export function ProfessionLimitsSummary({ profession }: { profession: Profession }) {
  const { t } = useText();
  const limitText = useLimitText();
  const limits = useProfessionLimits(profession.id);
  const mayManage = useMay('pools.manage');
  const [editing, setEditing] = useState(false);
  return (
    <section className="border-t border-line pt-4">
      <div className="mb-3 flex flex-wrap items-center gap-2">
        <h3 className="flex-1 basis-40 text-sm font-semibold">{t('cell.professionLimits')}</h3>
        {mayManage && (
          <Button size="small" disabled={!limits.data} onClick={() => setEditing(true)}>
            {t('cell.changeLimits')}
          </Button>
        )}
      </div>
      <QueryState query={limits}>
        {(values) => (
          <>
            <Facts
              rows={LIMITS.map((limit) => {
                const set = values[limit];
                return {
                  name: t(`cell.${limit}`),
                  value:
                    set == null ? (
                      <span className="text-muted">{t('cell.notSetServer')}</span>
                    ) : (
                      limitText(limit, set)
                    ),
                };
              })}
            />
            {editing && (
              <ProfessionLimits profession={profession} values={values} onClose={() => setEditing(false)} />
            )}
          </>
        )}
      </QueryState>
    </section>
  );
}
