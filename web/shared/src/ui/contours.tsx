// The depth lines of a tide pool, as on a chart: the quiet picture beside the login form. Computed, so it costs no image.

/** A closed wobbly ring around (x, y); the seed shifts its bays, so that neighbouring rings differ a little. */
function ring(x: number, y: number, radius: number, seed: number): string {
  const steps = 72;
  const points: string[] = [];
  for (let step = 0; step < steps; step += 1) {
    const angle = (step / steps) * 2 * Math.PI;
    const wobble =
      1 +
      0.13 * Math.sin(2 * angle + seed) +
      0.07 * Math.sin(3 * angle - 1.7 * seed) +
      0.03 * Math.sin(5 * angle + 2.3 * seed);
    const px = x + radius * wobble * Math.cos(angle) * 1.18;
    const py = y + radius * wobble * Math.sin(angle);
    points.push(`${px.toFixed(1)} ${py.toFixed(1)}`);
  }
  return `M${points.join('L')}Z`;
}

const POOLS = [
  { x: 250, y: 330, rings: 13, step: 34, seed: 0.6 },
  { x: 560, y: 760, rings: 9, step: 30, seed: 2.4 },
];

export function Contours({ className }: { className?: string }) {
  return (
    <svg
      viewBox="0 0 700 900"
      preserveAspectRatio="xMidYMid slice"
      className={className}
      fill="none"
      aria-hidden="true"
      focusable="false"
    >
      {POOLS.map((pool) =>
        Array.from({ length: pool.rings }, (_, index) => {
          const depth = index / pool.rings;
          return (
            <path
              key={`${pool.x}-${index}`}
              d={ring(pool.x, pool.y, pool.step * (index + 0.7), pool.seed + index * 0.16)}
              stroke="currentColor"
              strokeWidth={index % 4 === 0 ? 1.6 : 0.9}
              opacity={0.75 - depth * 0.6}
            />
          );
        }),
      )}
    </svg>
  );
}
