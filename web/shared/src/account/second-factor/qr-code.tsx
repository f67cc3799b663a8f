// A text as a QR code, drawn here: the secret in it is sent to nobody.
import core from 'qrcode/lib/core/qrcode.js';
import { useMemo } from 'react';

/** White around the code that readers need, in modules. */
const QUIET = 4;

/** One path of a square for every dark module. */
export function qrPath(text: string): { path: string; size: number } {
  const { size, data } = core.create(text, { errorCorrectionLevel: 'M' }).modules;
  let path = '';
  data.forEach((dark, index) => {
    if (dark) path += `M${(index % size) + QUIET},${Math.floor(index / size) + QUIET}h1v1h-1z`;
  });
  return { path, size: size + 2 * QUIET };
}

/** Dark on white in either theme: many readers take nothing else. */
export function QrCode({ text, label }: { text: string; label: string }) {
  const { path, size } = useMemo(() => qrPath(text), [text]);
  return (
    <svg
      role="img"
      aria-label={label}
      viewBox={`0 0 ${size} ${size}`}
      shapeRendering="crispEdges"
      className="size-48 rounded-lg border border-line"
    >
      <rect width={size} height={size} fill="#fff" />
      <path d={path} fill="#000" />
    </svg>
  );
}
