import { Fact, Table } from '../parts/small.js';
import type { JSX } from 'preact';
import type { HistoryWindow, LimitState } from '../../api.js';
import { amount, dated, duration, plural, stretch } from '../data/format.js';
import { sum } from '../data/series.js';

interface UsageProps {
  readonly limit: string;
  readonly usage: NonNullable<LimitState['usage']>;
  readonly unit: string | undefined;
}

/** The daily charges of a key, the newest first. Folded, since they don't affect the current state. */
export function UsageTable({ limit, usage, unit }: UsageProps): JSX.Element {
  return (
    <details>
      <summary>Charged by days in {usage.timezone}</summary>
      <Table label={`What ${limit} charged by days`} of={['Day', 'Charged']} numbers={['Charged']}>
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
      </Table>
    </details>
  );
}

interface Props {
  readonly limit: string;
  readonly regions: NonNullable<LimitState['regions']>;
  readonly unit: string | undefined;
}

/** The units of a key that each region holds, and the age of this information. */
export function RegionTable({ limit, regions, unit }: Props): JSX.Element {
  return (
    <Table
      label={`What regions hold of ${limit}`}
      of={['Region', 'Holds', 'As of', 'Last call']}
      numbers={['Holds', 'As of', 'Last call']}
    >
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
    </Table>
  );
}

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

/** The units that a key holds in a limit, and its recent charges, if the limit records them. */
export function HeldFacts({
  state: { leases, holds, usage },
  unit,
}: {
  state: LimitState;
  unit: string | undefined;
}): JSX.Element {
  return (
    <>
      {leases && (
        <Fact name="Held by">
          {leases.count === 0 ? 'nobody' : plural(leases.count, 'lease')}
          <Lapses of={leases} />
        </Fact>
      )}
      {holds && (
        <Fact name="Reserved">
          {holds.count > 0 && holds.units !== undefined && `${amount(holds.units, unit)} by `}
          {holds.count === 0 ? 'nothing' : plural(holds.count, 'reservation')}
          <Lapses of={holds} />
        </Fact>
      )}
      {usage && (
        <Fact name={`Charged since ${dated(usage.since)}`}>
          {usage.leftOut
            ? 'not known: keys beyond maxKeys are not recorded'
            : amount(sum(usage.days.map(({ units }) => units)), unit)}
        </Fact>
      )}
    </>
  );
}

/** When units lapse that are not renewed, released or settled. */
function Lapses({ of: { count, firstLapseMs, lastLapseMs } }: { of: NonNullable<LimitState['leases']> }) {
  if (firstLapseMs === undefined) return null;
  const first = duration(firstLapseMs);
  const last = lastLapseMs === undefined ? undefined : duration(lastLapseMs);
  const until = last === undefined ? `${first} and later` : last === first ? first : `${first} to ${last}`;
  return (
    <span class="soft">
      , {count === 1 ? 'lapses' : 'lapse'} in {until}
    </span>
  );
}
