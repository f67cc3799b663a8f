// Which files are taken beside a prompt, and that what is sent is what was in them.
import { expect, it } from 'vitest';
import { contentOf, fileSize, fitting } from './attach';

const policy = { maxBytes: 2_000_000, maxImageBytes: 1_000_000, maxPayload: 4_256 * 1024 };
const file = (name: string, type: string, size: number) => ({ name, type, size });

it('takes what fits, and names the limit of what does not', () => {
  const { taken, refused } = fitting(
    [],
    [
      file('note.txt', 'text/plain', 2_000_000),
      file('big.txt', 'text/plain', 2_000_001),
      file('photo.png', 'image/png', 1_000_001),
    ],
    policy,
  );
  expect(taken.map(({ name }) => name)).toEqual(['note.txt']);
  expect(refused).toEqual([
    { name: 'big.txt', limit: 2_000_000, together: false },
    { name: 'photo.png', limit: 1_000_000, together: false },
  ]);
});

it('counts all files of a prompt together, as they are sent', () => {
  const chosen = [file('one.txt', 'text/plain', 1_900_000)];
  const { taken, refused } = fitting(
    chosen,
    [file('two.txt', 'text/plain', 1_900_000), file('small.txt', 'text/plain', 9)],
    policy,
  );
  expect(taken.map(({ name }) => name)).toEqual(['small.txt']);
  expect(refused).toMatchObject([{ name: 'two.txt', together: true }]);
});

it('reads a file of any length as base64', async () => {
  const bytes = Uint8Array.from({ length: 100_000 }, (_, at) => (at * 7) % 256);
  const read = await contentOf(new File([bytes], 'x.bin', { type: '' }));
  expect(read).toMatchObject({ name: 'x.bin', size: 100_000 });
  expect(Uint8Array.from(atob(read.content), (char) => char.charCodeAt(0))).toEqual(bytes);
});

it.each([
  [512, '512 bytes'],
  [1500, '1.5 kB'],
  [6_291_456, '6.3 MB'],
])('%i bytes read as %s', (bytes, text) => {
  expect(fileSize(bytes, 'en-GB')).toBe(text);
});
