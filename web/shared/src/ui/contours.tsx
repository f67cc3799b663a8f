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

const RINGS = 19;
const STEP = 38;

export function Contours({ className }: { className?: string }) {
  return (
    <svg
      viewBox="0 0 700 900"
      preserveAspectRatio="xMidYMid slice"
      className={className}
      aria-hidden="true"
      focusable="false"
    >
      {/* From the shore inwards: every ring adds a little light to what lies inside it, so the pool glows from its middle. */}
      {Array.from({ length: RINGS }, (_, index) => {
        const outside = RINGS - index;
        return (
          <path
            key={outside}
            d={ring(270 + outside * 6, 330 + outside * 9, STEP * (outside - 0.3), 0.6 + outside * 0.15)}
            className="fill-deep-fill"
            fillOpacity="0.028"
            stroke="currentColor"
            strokeWidth={outside % 4 === 1 ? 1.6 : 0.9}
            strokeOpacity={0.72 - (outside / RINGS) * 0.56}
          />
        );
      })}
    </svg>
  );
}
