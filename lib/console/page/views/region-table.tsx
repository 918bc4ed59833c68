import type { JSX } from 'preact';
import type { LimitState } from '../../api.js';
import { amount, duration } from '../data/format.js';

interface Props {
  readonly limit: string;
  readonly regions: NonNullable<LimitState['regions']>;
  readonly unit: string | undefined;
}

/** What each region holds of a key, and how old that is. */
export function RegionTable({ limit, regions, unit }: Props): JSX.Element {
  return (
    <table class="table" aria-label={`What regions hold of ${limit}`}>
      <thead>
        <tr>
          <th scope="col">Region</th>
          <th scope="col" class="number">
            Holds
          </th>
          <th scope="col" class="number">
            As of
          </th>
          <th scope="col" class="number">
            Last call
          </th>
        </tr>
      </thead>
      <tbody>
        {regions.map(({ region, held, ageMs, seenMs }) => (
          <tr key={region}>
            <th scope="row">{region}</th>
            <td class="number" data-label="Holds">
              {amount(held, unit)}
            </td>
            <td class="number" data-label="As of">
              {ageMs === undefined ? 'no call for it' : `${duration(ageMs)} ago`}
            </td>
            <td class="number" data-label="Last call">
              {seenMs === undefined ? 'not known' : `${duration(seenMs)} ago`}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
