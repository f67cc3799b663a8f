// Axis arithmetic of the charts: round steps, and where a value falls.

/** Round numbers from 0 up to at least `max`, in about `count` steps of 1, 2, 2.5 or 5 times a power of ten. */
export function ticks(max: number, count = 4): number[] {
  if (!(max > 0)) return [0, 1];
  const rough = max / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 2.5, 5].find((factor) => factor * power >= rough) ?? 10) * power;
  const steps = Math.ceil(max / step - 1e-9);
  return Array.from({ length: steps + 1 }, (_, index) => Number((index * step).toPrecision(12)));
}

/** Which of `count` equally wide columns a position belongs to. */
export function columnAt(x: number, width: number, count: number): number {
  if (width <= 0 || count === 0) return 0;
  return Math.min(count - 1, Math.max(0, Math.floor((x / width) * count)));
}

/** Every how many columns a label fits that needs `room` pixels. */
export function labelStride(width: number, count: number, room: number): number {
  return Math.max(1, Math.ceil((room * count) / Math.max(1, width)));
}

/** About how wide an axis label of 11 px is; a Chinese character is as wide as it is high. */
export function labelWidth(label: string): number {
  return Array.from(label, (letter) => (letter >= '\u2e80' ? 11 : 6.8)).reduce((sum, one) => sum + one, 0);
}
