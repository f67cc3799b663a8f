// How a limit is written: with its unit.
import { useFormat } from '../format';
import { useText } from '../messages';
import type { Limit } from './limits';

/** Writes a limit with its unit. */
export function useLimitText() {
  const { t, number } = useText();
  const format = useFormat();
  return (limit: Limit, value: number) => {
    switch (limit) {
      case 'memory_mib':
      case 'disk_mib':
        return format.mebibytes(value);
      case 'cpu_percent':
        return t('cell.cpuValue', { percent: format.percent(value) });
      case 'tasks':
        return t('cell.tasksValue', { count: number(value) });
    }
  };
}
