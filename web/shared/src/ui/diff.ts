// The difference of two texts, line by line: what to take away and what to add, in the order of reading.

export interface DiffLine {
  kind: 'same' | 'removed' | 'added';
  text: string;
}

/** The longest common lines are kept; everything else is a change. */
export function diffLines(before: string, after: string): DiffLine[] {
  const a = before.split('\n');
  const b = after.split('\n');
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end])
    end += 1;

  const left = a.slice(start, a.length - end);
  const right = b.slice(start, b.length - end);
  // common[i][j]: how many lines left[i..] and right[j..] have in common.
  const common = Array.from({ length: left.length + 1 }, () => new Uint32Array(right.length + 1));
  const at = (i: number, j: number) => common[i]?.[j] ?? 0;
  for (let i = left.length - 1; i >= 0; i -= 1) {
    for (let j = right.length - 1; j >= 0; j -= 1) {
      const row = common[i];
      if (row) row[j] = left[i] === right[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  const lines: DiffLine[] = a.slice(0, start).map((text) => ({ kind: 'same', text }));
  let i = 0;
  let j = 0;
  while (i < left.length || j < right.length) {
    const l = left[i];
    const r = right[j];
    if (l !== undefined && r !== undefined && l === r) {
      lines.push({ kind: 'same', text: l });
      i += 1;
      j += 1;
    } else if (l !== undefined && (r === undefined || at(i + 1, j) >= at(i, j + 1))) {
      lines.push({ kind: 'removed', text: l });
      i += 1;
    } else if (r !== undefined) {
      lines.push({ kind: 'added', text: r });
      j += 1;
    }
  }
  return [...lines, ...a.slice(a.length - end).map((text): DiffLine => ({ kind: 'same', text }))];
}
