// The cell of an instance: how it is confined, what its server cannot do of that, what it may take and takes, what is left
// open; and the ways in and out.
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { RelativeTime } from '@tidepool/shared/i18n/time';
import { Badge } from '@tidepool/shared/ui/badge';
import { Button } from '@tidepool/shared/ui/button';
import { Confirm } from '@tidepool/shared/ui/confirm';
import { Meter } from '@tidepool/shared/ui/meter';
import { Notice } from '@tidepool/shared/ui/notice';
import { Facts } from '@tidepool/shared/ui/panel';
import { Gauge, LockKeyholeOpen, Shield, ShieldOff, Undo2 } from 'lucide-react';
import { useState } from 'react';
import { api } from '../api';
import { inherited, LIMITS, type Limit, type Origin } from '../cell/limits';
import { useLimitText } from '../cell/limit-text';
import { LimitsDialog } from '../cell/limits-dialog';
import { OpeningsDialog } from '../cell/openings-dialog';
import { useProfessionLimits, useServerLimits } from '../cell/queries';
import { useFormat } from '../format';
import { useMay } from '../me';
import { useText } from '../messages';
import { canMoveIntoCell, CellStatus, isOutsideOfCells, whyNoEntry } from '../parts/cell';
import { QueryState } from '../parts/query-state';
import { Section } from '../parts/section';
import type { CellDetail, InstanceDetail } from '../records';
import { useTaskToast } from '../task-drawer';
import { enterCell, leaveCell } from './actions';
import { MoveBack, MoveIntoCell } from './move';
import { usePlaceText, type PlaceKey } from './place-texts';

const MEBIBYTE = 1024 * 1024;

export function CellTab({ instance }: { instance: InstanceDetail }) {
  const cell = useQuery({
    queryKey: ['cell', 'of', instance.id],
    queryFn: () => unwrap(api.GET('/instances/{id}/cell', { params: { path: { id: instance.id } } })),
  });
  return (
    <QueryState query={cell}>
      {(data) => (
        <div className="space-y-7">
          <Confinement instance={instance} cell={data} />
          <Limits instance={instance} cell={data} />
        </div>
      )}
    </QueryState>
  );
}

/** Shows what the server answered at once, and has everything read again that shows parts of it. */
function useTakeOver(id: string) {
  const client = useQueryClient();
  return (cell?: CellDetail) => {
    if (cell) client.setQueryData(['cell', 'of', id], cell);
    for (const root of ['cell', 'instances', 'tasks']) void client.invalidateQueries({ queryKey: [root] });
  };
}

/** What its state means, or why it has none. */
function stateText({ runner }: InstanceDetail, cell: CellDetail): PlaceKey {
  if (runner === 'process') return 'move.observed';
  if (runner === 'address') return 'place.elsewhereText';
  return isOutsideOfCells({ runner }) ? 'move.outside' : `cell.${cell.state}Text`;
}

/** Where no unit of the system runs it, a cell is neither there nor possible. */
const hasNoCell = (instance: InstanceDetail, cell: CellDetail) =>
  cell.state === 'foreign' || isOutsideOfCells(instance);

function Confinement({ instance, cell }: { instance: InstanceDetail; cell: CellDetail }) {
  const { t } = usePlaceText();
  const mayManage = useMay('instances.manage');
  const mayOpen = useMay('cells.open');
  const mayMove = useMay('instances.adopt');
  const mayMoveBack = useMay('instances.place');
  const takeOver = useTakeOver(instance.id);
  const notify = useTaskToast();
  const [asking, setAsking] = useState<'enter' | 'leave' | 'openings' | 'move' | 'back' | null>(null);
  const close = () => setAsking(null);
  const isConfined = cell.state === 'confined';
  const isQuiet = isConfined || (cell.state === 'unknown' && !isOutsideOfCells(instance));
  const canEnter = whyNoEntry({ ...instance, cell: cell.state }) === null;
  const canMove = !canEnter && canMoveIntoCell(instance);
  const isOutside = isOutsideOfCells(instance);
  const interrupted = instance.assigned_email && (
    <p>{t('cell.interrupts', { email: instance.assigned_email })}</p>
  );
  return (
    <Section
      title={t('cell.title')}
      actions={
        <>
          {canEnter && mayManage && (
            <Button size="small" look="primary" onClick={() => setAsking('enter')}>
              <Shield className="size-4" aria-hidden="true" />
              {t('cell.enter')}
            </Button>
          )}
          {mayMove && canMove && (
            <Button size="small" look="primary" onClick={() => setAsking('move')}>
              <Shield className="size-4" aria-hidden="true" />
              {t('move.into')}
            </Button>
          )}
          {mayOpen && !hasNoCell(instance, cell) && (
            <Button size="small" onClick={() => setAsking('openings')}>
              <LockKeyholeOpen className="size-4" aria-hidden="true" />
              {t('cell.changeOpenings')}
            </Button>
          )}
          {mayOpen && isConfined && (
            <Button size="small" look="danger" onClick={() => setAsking('leave')}>
              <ShieldOff className="size-4" aria-hidden="true" />
              {t('cell.leave')}
            </Button>
          )}
          {mayMoveBack && instance.moved_from != null && (
            <Button size="small" look="danger" onClick={() => setAsking('back')}>
              <Undo2 className="size-4" aria-hidden="true" />
              {t('move.back')}
            </Button>
          )}
        </>
      }
    >
      <Facts
        rows={[
          {
            name: t('cell.state'),
            value: (
              <>
                <CellStatus state={isOutside ? 'unconfined' : cell.state} />
                <p className={`text-sm ${isQuiet ? 'text-muted' : 'text-warning'}`}>
                  {t(stateText(instance, cell))}
                  {canMove && <span className="block">{t('move.can')}</span>}
                </p>
              </>
            ),
          },
          // What was found when its cell was written says nothing of a unit without one.
          ...(isConfined
            ? [
                {
                  name: t('cell.score'),
                  value:
                    cell.score == null ? (
                      <span className="text-muted">{t('cell.noScore')}</span>
                    ) : (
                      t('cell.scoreValue', { score: cell.score.toFixed(1) })
                    ),
                },
                {
                  name: t('cell.leftOut'),
                  value: (
                    <Directives
                      names={cell.left_out}
                      none={t('cell.leftOutNone')}
                      meaning={t('cell.leftOutText')}
                    />
                  ),
                },
                {
                  name: t('cell.notEnforced'),
                  value: (
                    <Directives
                      names={cell.not_enforced}
                      none={t('cell.notEnforcedNone')}
                      meaning={t('cell.notEnforcedText')}
                    />
                  ),
                },
              ]
            : []),
          ...(instance.moved_from
            ? [{ name: t('move.from'), value: <From moved={instance.moved_from} /> }]
            : []),
          ...(hasNoCell(instance, cell)
            ? []
            : [{ name: t('cell.openings'), value: <Openings cell={cell} /> }]),
        ]}
      />
      {asking === 'enter' && (
        <Confirm
          title={t('cell.enterTitle', { name: instance.name })}
          confirm={t('cell.enter')}
          danger={false}
          run={async () =>
            notify((await enterCell(instance.id)).task_id, t('cell.queued', { name: instance.name }))
          }
          onDone={takeOver}
          onClose={close}
        >
          <p>{t('cell.enterText')}</p>
          {interrupted}
        </Confirm>
      )}
      {asking === 'leave' && (
        <Confirm
          title={t('cell.leaveTitle', { name: instance.name })}
          confirm={t('cell.leave')}
          run={async () =>
            notify((await leaveCell(instance.id)).task_id, t('cell.leaveQueued', { name: instance.name }))
          }
          onDone={takeOver}
          onClose={close}
        >
          <Notice tone="warning">{t('cell.leaveWarning')}</Notice>
          <p>{t('cell.leaveText')}</p>
          {interrupted}
        </Confirm>
      )}
      {asking === 'move' && <MoveIntoCell instance={instance} onDone={takeOver} onClose={close} />}
      {asking === 'back' && <MoveBack instance={instance} onDone={takeOver} onClose={close} />}
      {asking === 'openings' && (
        <OpeningsDialog instance={instance} cell={cell} onDone={takeOver} onClose={close} />
      )}
    </Section>
  );
}

/** Where it was before it was moved into its cell. */
function From({ moved }: { moved: NonNullable<InstanceDetail['moved_from']> }) {
  const { t } = usePlaceText();
  return (
    <>
      <code className="font-mono text-sm break-all">{moved.home}</code>
      <span className="block text-sm text-muted">
        {t(`place.runner.${moved.runner}`)} · <RelativeTime at={moved.moved_at} />
      </span>
      <span className="block text-sm text-muted">{t('move.fromText')}</span>
    </>
  );
}

/** Directives of systemd by their names, and what it means that they are named here. */
function Directives({ names, none, meaning }: { names: readonly string[]; none: string; meaning: string }) {
  if (names.length === 0) return <span className="text-muted">{none}</span>;
  return (
    <>
      <ul className="flex flex-wrap gap-1.5">
        {names.map((name) => (
          <li key={name}>
            <code className="rounded-md bg-sunken px-1.5 py-0.5 font-mono text-xs wrap-anywhere">{name}</code>
          </li>
        ))}
      </ul>
      <p className="mt-1 text-sm text-warning">{meaning}</p>
    </>
  );
}

function Openings({ cell }: { cell: CellDetail }) {
  const { t } = useText();
  const stillOpen = cell.openings_written.filter((one) => !cell.openings.includes(one));
  return (
    <>
      {cell.openings.length === 0 && <span className="text-muted">{t('cell.noOpenings')}</span>}
      <ul className="space-y-1">
        {cell.openings.map((one) => (
          <li key={one}>
            <Badge tone={one === 'browser' ? 'none' : 'warn'}>{t(`cell.opening.${one}`)}</Badge>
            <span className="block text-sm text-muted">{t(`cell.opening.${one}Text`)}</span>
          </li>
        ))}
      </ul>
      {stillOpen.length > 0 && (
        <p className="mt-1 text-sm text-warning">
          {t('cell.stillOpen', { names: stillOpen.map((one) => t(`cell.opening.${one}`)).join(', ') })}
        </p>
      )}
    </>
  );
}

function Limits({ instance, cell }: { instance: InstanceDetail; cell: CellDetail }) {
  const { t } = useText();
  const limitText = useLimitText();
  const takeOver = useTakeOver(instance.id);
  const mayManage = useMay('instances.manage');
  const [editing, setEditing] = useState(false);
  const server = useServerLimits(instance.server_id);
  const profession = useProfessionLimits(instance.pool_entry?.profession_id);
  const theirs = instance.pool_entry ? profession.data : null;
  /** What holds when the instance sets nothing; unknown until everybody was asked. */
  const fallback = (limit: Limit) =>
    server.data && theirs !== undefined ? inherited(limit, theirs, server.data) : undefined;
  const originOf = (limit: Limit): Origin | undefined =>
    cell.own_limits[limit] == null ? fallback(limit)?.origin : 'own';
  return (
    <Section
      title={t('cell.limits')}
      actions={
        mayManage && (
          <Button size="small" onClick={() => setEditing(true)}>
            <Gauge className="size-4" aria-hidden="true" />
            {t('cell.changeLimits')}
          </Button>
        )
      }
    >
      {cell.state !== 'confined' && (
        <p className="mb-3 text-sm text-warning">
          {t(hasNoCell(instance, cell) ? 'cell.limitsForeign' : 'cell.limitsUnheld')}
        </p>
      )}
      <Facts
        rows={[
          ...LIMITS.filter((limit) => !hasNoCell(instance, cell) || limit === 'disk_mib').map((limit) => ({
            name: t(`cell.${limit}`),
            value: (
              <span className="flex flex-wrap items-center gap-x-2">
                {limitText(limit, cell.limits[limit])}
                <OriginMark origin={originOf(limit)} />
              </span>
            ),
          })),
          { name: t('cell.diskUsed'), value: <DiskUsed cell={cell} /> },
        ]}
      />
      {editing && (
        <LimitsDialog
          name={instance.name}
          lead={t('cell.limitsLead')}
          values={cell.own_limits}
          otherwise={(limit) => {
            const value = cell.own_limits[limit] == null ? cell.limits[limit] : fallback(limit)?.value;
            return value?.toString();
          }}
          save={(body) =>
            unwrap(api.PUT('/instances/{id}/cell/limits', { params: { path: { id: instance.id } }, body }))
          }
          onDone={takeOver}
          onClose={() => setEditing(false)}
        />
      )}
    </Section>
  );
}

function OriginMark({ origin }: { origin: Origin | undefined }) {
  const { t } = useText();
  if (origin === undefined) return null;
  if (origin === 'own') return <Badge tone="busy">{t('cell.origin.own')}</Badge>;
  return <span className="text-sm text-muted">{t(`cell.origin.${origin}`)}</span>;
}

function DiskUsed({ cell }: { cell: CellDetail }) {
  const { t } = useText();
  const format = useFormat();
  if (cell.home_bytes == null) return <span className="text-muted">{t('cell.diskUnknown')}</span>;
  const most = cell.limits.disk_mib * MEBIBYTE;
  const text = t('cell.diskValue', {
    used: format.bytes(cell.home_bytes),
    limit: format.mebibytes(cell.limits.disk_mib),
  });
  return (
    <div className="max-w-sm space-y-1.5">
      <p className="flex flex-wrap justify-between gap-x-3">
        <span className="tabular-nums">{text}</span>
        {cell.measured_at && (
          <span className="text-sm text-muted">
            <RelativeTime at={cell.measured_at} />
          </span>
        )}
      </p>
      <Meter label={t('cell.diskUsed')} value={cell.home_bytes} max={most} text={text} />
      {cell.home_bytes > most && <p className="text-sm text-danger">{t('cell.diskOver')}</p>}
    </div>
  );
}
