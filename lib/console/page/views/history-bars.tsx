import type { JSX } from 'preact';
import type { HistoryWindow } from '../../api.js';
import { amount, stretch } from '../data/format.js';

/** The use of past windows, the oldest first. */
export function HistoryBars({
  windows,
  quota,
  unit,
}: {
  windows: readonly HistoryWindow[];
  quota: number;
  unit: string | undefined;
}): JSX.Element {
  const ordered = windows.toSorted((one, other) => one.startsAt - other.startsAt);
  const top = Math.max(1, ...ordered.map(({ used }) => used));
  return (
    <figure>
      <ul class="windows">
        {ordered.map(({ startsAt, endsAt, used }) => (
          <li
            key={startsAt}
            class={used >= quota ? 'full' : undefined}
            style={{ height: `${Math.max(4, (100 * used) / top)}%` }}
            title={`${stretch(startsAt, endsAt)}: ${amount(used, unit)}`}
          >
            <span class="hidden-text">
              {stretch(startsAt, endsAt)}: {amount(used, unit)}
            </span>
          </li>
        ))}
      </ul>
      <figcaption class="soft small">Used in past windows, the newest on the right</figcaption>
    </figure>
  );
}
