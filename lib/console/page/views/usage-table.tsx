import type { JSX } from 'preact';
import type { LimitState } from '../../api.js';
import { amount, dated } from '../data/format.js';

interface Props {
  readonly limit: string;
  readonly usage: NonNullable<LimitState['usage']>;
  readonly unit: string | undefined;
}

/** What a key was charged by days, the newest first: folded, since it says nothing of now. */
export function UsageTable({ limit, usage, unit }: Props): JSX.Element {
  return (
    <details>
      <summary>Charged by days in {usage.timezone}</summary>
      <table class="table" aria-label={`What ${limit} charged by days`}>
        <thead>
          <tr>
            <th scope="col">Day</th>
            <th scope="col" class="number">
              Charged
            </th>
          </tr>
        </thead>
        <tbody>
          {usage.days.toReversed().map(({ day, units }) => (
            <tr key={day}>
              <th scope="row">
                <time dateTime={day}>{dated(day)}</time>
              </th>
              <td class="number" data-label="Charged">
                {amount(units, unit)}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  );
}
