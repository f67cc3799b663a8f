// How an instance is confined on its server, in a word; and whether it can be brought into its cell.
import { Badge, Status, type Tone } from '@tidepool/shared/ui/badge';
import { useText } from '../messages';
import type { Instance, InstanceDetail } from '../records';

type CellState = Instance['cell'];

const TONES: Record<CellState, Tone> = {
  confined: 'good',
  altered: 'bad',
  unconfined: 'warn',
  foreign: 'warn',
  unknown: 'none',
};

export function CellStatus({ state }: { state: CellState }) {
  const { t } = useText();
  return <Status tone={TONES[state]}>{t(`cell.${state}`)}</Status>;
}

/** Beside a name: only what somebody should know. */
export function CellBadge({ instance }: { instance: Pick<Instance, 'cell'> }) {
  const { t } = useText();
  const { cell } = instance;
  if (cell !== 'unconfined' && cell !== 'foreign' && cell !== 'altered') return null;
  return (
    <span title={t(`cell.${cell}Text`)}>
      <Badge tone={TONES[cell]}>{t(`cell.${cell}Badge`)}</Badge>
    </span>
  );
}

type Placed = Pick<Instance, 'cell' | 'isolation' | 'is_main' | 'container_id' | 'runner'>;

/** Whether no unit of the system runs it: then it has no cell where it is. */
export const isOutsideOfCells = (instance: Pick<Instance, 'runner'>) => instance.runner !== 'unit';

/** Why an instance cannot be brought into its cell; null where it can. */
export function whyNoEntry(instance: Placed): 'batch.inCell' | 'batch.noCell' | 'batch.notOnServer' | null {
  if (instance.cell === 'confined') return 'batch.inCell';
  if (isOnNoServer(instance) || instance.runner === 'address') return 'batch.notOnServer';
  const isOurs = instance.cell !== 'foreign' && !instance.is_main && instance.container_id === '';
  return isOurs && !isOutsideOfCells(instance) ? null : 'batch.noCell';
}

/** Whether nothing of it is on its server, nor known at an address of its own: nobody can use it. */
export const isOnNoServer = (instance: Pick<Instance, 'isolation' | 'runner'>) =>
  instance.isolation === 'none' && instance.runner !== 'address';

type Movable = Pick<InstanceDetail, 'runner' | 'unit' | 'isolation' | 'is_main' | 'moved_from'>;

/** Whether what somebody else made of it can be moved into a cell. What is in a container or elsewhere stays there. */
export function canMoveIntoCell(instance: Movable): boolean {
  const isAdopted = instance.isolation === 'adopted' || instance.isolation === 'shared';
  // A unit without a name of its own is one that the platform wrote.
  const isTheirs =
    instance.runner === 'unit'
      ? instance.unit !== ''
      : instance.runner === 'user_unit' || instance.runner === 'process';
  return isAdopted && isTheirs && !instance.is_main && instance.moved_from == null;
}
