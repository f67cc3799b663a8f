// A file is read whole and right, or refused.
import { expect, it } from 'vitest';
import { MOST_BYTES, readFile } from './text-file';

const utf16 = (text: string) => new Blob([Uint16Array.from(`\uFEFF${text}`, (char) => char.charCodeAt(0))]);

it('reads UTF-8 with and without a byte order mark', async () => {
  expect(await readFile(new Blob(['email\né@b.test']))).toEqual({ text: 'email\né@b.test' });
  expect(await readFile(new Blob(['\uFEFFemail']))).toEqual({ text: 'email' });
});

it('reads UTF-16, which spreadsheets call Unicode text', async () => {
  expect(await readFile(utf16('email\t姓名'))).toEqual({ text: 'email\t姓名' });
});

it('refuses other encodings instead of spoiling names', async () => {
  const latin = new Blob([Uint8Array.from([0x41, 0xe9, 0x0a])]);
  expect(await readFile(latin)).toEqual({ problem: 'notText' });
});

it('refuses what the server would not take', async () => {
  expect(await readFile(new Blob(['x'.repeat(MOST_BYTES)]))).toHaveProperty('text');
  expect(await readFile(new Blob(['x'.repeat(MOST_BYTES + 1)]))).toEqual({ problem: 'tooLarge' });
});
