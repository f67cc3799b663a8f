// Reads a number field. What is not a whole number in digits is refused, never taken for another number.

export interface Range {
  readonly min: number;
  readonly max: number;
}

/** The number, null for an empty field, or what is wrong with the text. */
export type ReadNumber =
  { readonly value: number | null } | { readonly problem: 'not_a_number' | 'out_of_range' };

/** Separators are refused, since "10.240" is ten to one reader and ten thousand to another. */
export function readWholeNumber(text: string, { min, max }: Range): ReadNumber {
  // An input method for Chinese may write full-width digits.
  const written = text.normalize('NFKC').trim();
  if (written === '') return { value: null };
  if (!/^[0-9]+$/.test(written)) return { problem: 'not_a_number' };
  const value = Number(written);
  return value < min || value > max ? { problem: 'out_of_range' } : { value };
}
