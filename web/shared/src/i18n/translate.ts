// Texts by key with {named} values; the key sets of all languages are held equal by a test.

export type Messages<Key extends string = string> = Readonly<Record<Key, string>>;
export type Values = Readonly<Record<string, string | number>>;

export function fill(text: string, values: Values = {}): string {
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => {
    const value = values[name];
    return value === undefined ? whole : String(value);
  });
}

/** The placeholders of a text, sorted: two translations of one key must name the same. */
export function placeholders(text: string): string[] {
  return [...text.matchAll(/\{(\w+)\}/g)].map((match) => match[1] ?? '').sort();
}
