// Which rows of a table are chosen. It outlives a change of page: the rows themselves are kept, so that a preview can
// name what is no longer in view.
import { useMemo, useState } from 'react';

export interface Selection<Row> {
  rows: readonly Row[];
  has: (row: Row) => boolean;
  toggle: (row: Row) => void;
  /** Adds all of them, or takes all of them away when every one was chosen. */
  toggleAll: (rows: readonly Row[]) => void;
  replace: (rows: readonly Row[]) => void;
  clear: () => void;
}

export function useSelection<Row>(keyOf: (row: Row) => string): Selection<Row> {
  const [chosen, setChosen] = useState<ReadonlyMap<string, Row>>(new Map());
  return useMemo(() => {
    const has = (row: Row) => chosen.has(keyOf(row));
    return {
      rows: [...chosen.values()],
      has,
      toggle: (row) => {
        const next = new Map(chosen);
        if (!next.delete(keyOf(row))) next.set(keyOf(row), row);
        setChosen(next);
      },
      toggleAll: (rows) => {
        const next = new Map(chosen);
        if (rows.every(has)) for (const row of rows) next.delete(keyOf(row));
        else for (const row of rows) next.set(keyOf(row), row);
        setChosen(next);
      },
      replace: (rows) => setChosen(new Map(rows.map((row) => [keyOf(row), row]))),
      clear: () => setChosen(new Map()),
    };
  }, [chosen, keyOf]);
}
