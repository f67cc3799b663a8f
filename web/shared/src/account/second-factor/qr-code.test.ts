// The picture has what every QR code has: three finders, a quiet zone, and other modules for another text.
import { describe, expect, it } from 'vitest';
import { qrPath } from './qr-code';

const URI =
  'otpauth://totp/tidepool:ada@example.com?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=tidepool&algorithm=SHA1&digits=6&period=30';

describe('qrPath', () => {
  it('draws finders in three corners inside the quiet zone', () => {
    const { path, size } = qrPath(URI);
    const dark = new Set(path.match(/\d+,\d+/g));
    const inner = size - 8;
    expect((inner - 17) % 4).toBe(0);
    for (const [x, y] of [
      [4, 4],
      [4 + inner - 7, 4],
      [4, 4 + inner - 7],
    ] as const) {
      for (let i = 0; i < 7; i += 1) expect(dark.has(`${x + i},${y}`)).toBe(true);
      expect(dark.has(`${x + 1},${y + 1}`)).toBe(false);
      expect(dark.has(`${x + 3},${y + 3}`)).toBe(true);
    }
    for (const at of dark) {
      const [x = 0, y = 0] = at.split(',').map(Number);
      expect(Math.min(x, y)).toBeGreaterThanOrEqual(4);
      expect(Math.max(x, y)).toBeLessThan(size - 4);
    }
  });

  it('differs for another secret', () => {
    expect(qrPath(URI).path).not.toBe(qrPath(URI.replace('GEZD', 'GEZA')).path);
  });
});
