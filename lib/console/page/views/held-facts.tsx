import type { JSX } from 'preact';
import type { LimitState } from '../../api.js';
import { amount, dated, duration, plural } from '../data/format.js';

/** What a key holds of a limit, and what it was charged lately, as far as the limit knows. */
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
        <>
          <dt>Held by</dt>
          <dd>
            {leases.count === 0 ? 'nobody' : plural(leases.count, 'lease')}
            <Lapses of={leases} />
          </dd>
        </>
      )}
      {holds && (
        <>
          <dt>Reserved</dt>
          <dd>
            {holds.count > 0 && holds.units !== undefined && `${amount(holds.units, unit)} by `}
            {holds.count === 0 ? 'nothing' : plural(holds.count, 'reservation')}
            <Lapses of={holds} />
          </dd>
        </>
      )}
      {usage && (
        <>
          <dt>Charged since {dated(usage.since)}</dt>
          <dd>
            {usage.leftOut
              ? 'not known: keys beyond maxKeys are not recorded'
              : amount(
                  usage.days.reduce((sum, { units }) => sum + units, 0),
                  unit,
                )}
          </dd>
        </>
      )}
    </>
  );
}

/** When those lapse that nobody renews, releases or settles. */
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
