// Ids of messages and runs: UUIDs, also on plain http pages, where neither crypto.randomUUID nor crypto.subtle exists.
export function newId(): string {
  return uuid(crypto.getRandomValues(new Uint8Array(16)), 4);
}

/** The same UUID for the same text, in every tab: four 32-bit FNV-1a sums, mixed. Spread, not secrecy, is what it is for. */
export function idOf(text: string): string {
  const bytes = new DataView(new ArrayBuffer(16));
  const source = new TextEncoder().encode(text);
  for (let part = 0; part < 4; part += 1) {
    let sum = 0x811c9dc5 ^ Math.imul(part + 1, 0x9e3779b1);
    for (const byte of source) sum = Math.imul(sum ^ byte, 0x01000193);
    sum = Math.imul(sum ^ (sum >>> 16), 0x85ebca6b);
    sum = Math.imul(sum ^ (sum >>> 13), 0xc2b2ae35);
    bytes.setUint32(part * 4, (sum ^ (sum >>> 16)) >>> 0);
  }
  return uuid(new Uint8Array(bytes.buffer), 8);
}

function uuid(bytes: Uint8Array, version: number): string {
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | (version << 4);
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}
