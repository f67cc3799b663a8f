// Reads the text of a file that a person chose. Spreadsheets save UTF-8, or UTF-16 with a mark at its beginning; other
// encodings look alike, and guessing would spoil names.

/** The server's limit. A larger file is not even read. */
export const MOST_BYTES = 512 * 1024;

export type FileProblem = 'tooLarge' | 'notText';

export async function readFile(file: Blob): Promise<{ text: string } | { problem: FileProblem }> {
  if (file.size > MOST_BYTES) return { problem: 'tooLarge' };
  const bytes = new Uint8Array(await file.arrayBuffer());
  const encoding =
    bytes[0] === 0xff && bytes[1] === 0xfe
      ? 'utf-16le'
      : bytes[0] === 0xfe && bytes[1] === 0xff
        ? 'utf-16be'
        : 'utf-8';
  try {
    return { text: new TextDecoder(encoding, { fatal: true }).decode(bytes) };
  } catch {
    return { problem: 'notText' };
  }
}
