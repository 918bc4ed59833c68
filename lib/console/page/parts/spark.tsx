import type { JSX } from 'preact';

const POINTS = 60;

/** A small chart with allowed requests as an area, and rejected ones as bars in front of it. */
export function Spark({ allowed, refused }: { allowed: readonly number[]; refused: readonly number[] }): JSX.Element {
  const area = gathered(allowed);
  const bars = gathered(refused);
  const top = Math.max(1, ...area, ...bars);
  const y = (value: number): string => (29 - (27 * value) / top).toFixed(2);
  const step = area.length > 1 ? 136 / (area.length - 1) : 136;
  const line = area.map((value, index) => `${(index * step).toFixed(1)},${y(value)}`).join(' ');
  return (
    <svg class="spark" viewBox="0 0 136 30" preserveAspectRatio="none" aria-hidden="true" focusable="false">
      <polygon class="area" points={`0,30 ${line} 136,30`} />
      <polyline class="line" points={line} />
      {bars.map((value, index) =>
        value === 0 ? null : (
          <rect
            key={index}
            class="refused"
            x={(index * step - step * 0.4).toFixed(1)}
            y={y(value)}
            width={(step * 0.8).toFixed(1)}
            height={(30 - Number(y(value))).toFixed(2)}
          />
        ),
      )}
    </svg>
  );
}

/** Sums of adjacent values, to limit the number of points. */
function gathered(values: readonly number[]): number[] {
  const size = Math.max(1, Math.ceil(values.length / POINTS));
  const sums: number[] = [];
  // From the end, so that groups keep their values when newer ones arrive.
  for (let end = values.length; end > 0; end -= size) {
    sums.unshift(values.slice(Math.max(0, end - size), end).reduce((total, value) => total + value, 0));
  }
  return sums;
}
