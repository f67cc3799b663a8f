// How an instance is confined on its server, in a word; and whether it can be brought into its cell.
import { Badge, Status, type Tone } from '@tidepool/shared/ui/badge';
import { useText } from '../messages';
import type { Instance } from '../records';

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

type Placed = Pick<Instance, 'cell' | 'isolation' | 'is_main' | 'container_id'>;

/** Why an instance cannot be brought into its cell; null where it can. */
export function whyNoEntry(instance: Placed): 'batch.inCell' | 'batch.noCell' | 'batch.notOnServer' | null {
  if (instance.cell === 'confined') return 'batch.inCell';
  if (instance.isolation === 'none') return 'batch.notOnServer';
  const isOurs = instance.cell !== 'foreign' && !instance.is_main && instance.container_id === '';
  return isOurs ? null : 'batch.noCell';
}
