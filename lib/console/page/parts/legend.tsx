import type { JSX } from 'preact';
import type { ChartLine } from './chart-line.js';

/** The lines of a chart, with their mean and maximum: also for those who cannot see the chart. */
export function Legend({
  lines,
  format,
}: {
  lines: readonly ChartLine[];
  format: (value: number) => string;
}): JSX.Element {
  return (
    <ul class="legend">
      {lines.map((line) => {
        const known = line.values.filter((value) => value !== null);
        const mean = known.length === 0 ? 0 : known.reduce((total, value) => total + value, 0) / known.length;
        const peak = known.reduce((most, value) => Math.max(most, value), 0);
        return (
          <li key={line.label}>
            <span class={`key ${line.colour} ${line.dashed ? 'dashed' : line.filled ? '' : 'line'}`} />
            {line.label}
            {known.length > 0 && (
              <span>
                mean <span class="numbers">{format(mean)}</span>, peak <span class="numbers">{format(peak)}</span>
              </span>
            )}
          </li>
        );
      })}
    </ul>
  );
}
