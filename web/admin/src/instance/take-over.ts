// Brings what an older version of the configuration had into the stored document, which is merged into the file on the
// server: an object key by key, a list as a whole, and null takes away. What was masked cannot be brought.
import type { ConfigChange } from '../records';

interface Past {
  config: unknown;
  changes: readonly ConfigChange[];
}

export interface TakenOver {
  /** The stored document with the values in it. */
  text: string;
  taken: readonly string[];
  /** Places that stay as they are today. */
  left: readonly string[];
}

type Tree = Record<string, unknown>;

const MASK = '***';
/** OpenClaw's notes about the file itself: nobody's to wish. */
const OWN = 'meta';

const isTree = (value: unknown): value is Tree =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Whether a value is a masked secret, or has one in it. */
export function isMasked(value: unknown): boolean {
  if (value === MASK) return true;
  return typeof value === 'object' && value !== null && Object.values(value).some(isMasked);
}

/** `models["a.b"].list[0].id` in parts; null when it is none of a document's places. */
export function segmentsOf(path: string): (string | number)[] | null {
  const part = /\.?([\w$:/-]+)|\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]/y;
  const segments: (string | number)[] = [];
  while (part.lastIndex < path.length) {
    const found = part.exec(path);
    if (found === null) return null;
    const [, plain, index, quoted] = found;
    if (plain !== undefined) segments.push(plain);
    else if (index !== undefined) segments.push(Number(index));
    else if (quoted !== undefined) {
      try {
        segments.push(String(JSON.parse(quoted)));
      } catch {
        return null;
      }
    }
  }
  return segments.length === 0 || segments.includes('__proto__') ? null : segments;
}

function valueAt(document: unknown, keys: readonly string[]): unknown {
  return keys.reduce((value, key) => (isTree(value) ? value[key] : undefined), document);
}

function setAt(document: Tree, keys: readonly string[], value: unknown) {
  let place = document;
  for (const key of keys.slice(0, -1)) {
    const next = place[key];
    if (isTree(next)) place = next;
    else {
      const made: Tree = {};
      place[key] = made;
      place = made;
    }
  }
  place[keys.at(-1) ?? ''] = value;
}

/** `stored` has to be a JSON object. */
export function takeOver(stored: string, past: Past): TakenOver {
  const document = JSON.parse(stored) as Tree;
  const taken: string[] = [];
  const left: string[] = [];
  for (const { path, is, should } of past.changes) {
    const segments = segmentsOf(path);
    const index = segments?.findIndex((one) => typeof one === 'number') ?? -1;
    const keys = (index < 0 ? segments : segments?.slice(0, index))?.map(String) ?? [];
    const value = index < 0 ? should : (valueAt(past.config, keys) ?? null);
    if (keys.length === 0 || keys[0] === OWN || isMasked(is) || isMasked(value)) {
      left.push(path);
      continue;
    }
    setAt(document, keys, value ?? null);
    taken.push(path);
  }
  return { text: JSON.stringify(document, null, 2), taken, left };
}
