// Texts by key with {named} values, and words that follow a number: "{count} {count, plural, one {line} other {lines}}". The key
// sets of all languages are held equal by a test.

export type Messages<Key extends string = string> = Readonly<Record<Key, string>>;
export type Values = Readonly<Record<string, string | number>>;

const PLURAL = /\{(\w+), plural, ((?:\w+ \{[^{}]*\} ?)+)\}/g;
const FORM = /(\w+) \{([^{}]*)\}/g;

/** Dear to make and kept. */
const rules = new Map<string, Intl.PluralRules>();

export function fill(text: string, values: Values = {}, language: string): string {
  return text
    .replace(PLURAL, (_, name: string, forms: string) => formFor(values[name], forms, language))
    .replace(/\{(\w+)\}/g, (whole, name: string) => {
      const value = values[name];
      return value === undefined ? whole : String(value);
    });
}

/** Numbers come formatted, too: what does not read as a number then, such as "1,000" and "1.2K", is a large one. */
function formFor(value: string | number | undefined, forms: string, language: string): string {
  const known = rules.get(language) ?? new Intl.PluralRules(language);
  rules.set(language, known);
  const number = Number(value);
  const wanted = known.select(Number.isNaN(number) ? 1000 : number);
  const byCategory = formsOf(forms);
  return byCategory[wanted] ?? byCategory.other ?? '';
}

function formsOf(forms: string): Partial<Record<string, string>> {
  return Object.fromEntries(
    [...forms.matchAll(FORM)].map(([, category = '', form = '']) => [category, form]),
  );
}

/** The placeholders of a text, sorted: two translations of one key must name the same. Which words follow a number is each language's own. */
export function placeholders(text: string): string[] {
  return [...text.replaceAll(PLURAL, '').matchAll(/\{(\w+)\}/g)].map((match) => match[1] ?? '').sort();
}

/** The categories of the words that follow a number, for each place in the text that has some. */
export function pluralForms(text: string): string[][] {
  return [...text.matchAll(PLURAL)].map(([, , forms = '']) => Object.keys(formsOf(forms)).sort());
}
