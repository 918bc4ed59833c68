import type { JSX } from 'preact';
import type { Figures, InstanceInfo } from '../../api.js';
import { isAlone, lastKnown, rateNow, sum, summed } from '../data/series.js';
import { milliseconds, percent, perSecond, plural, whole } from '../data/format.js';

export function Tiles({ overview, instances }: { overview: Figures; instances: readonly InstanceInfo[] }): JSX.Element {
  const { series, stepMs, totals } = overview;
  const half = lastKnown(series.store.p50);
  const rate = (field: 'allowed' | 'refused'): string => perSecond(rateNow(summed(series, field), stepMs));
  // The totals include the current step.
  const all = (field: 'allowed' | 'refused'): number => sum(Object.values(totals).map((each) => each[field]));
  const [allAllowed, allRefused] = [all('allowed'), all('refused')];
  const fallback = sum(series.store.fallback);
  const checks = sum(series.store.checks);
  const open = instances.filter(({ circuit }) => circuit === 'open').length;
  return (
    <dl class="tiles">
      <Tile
        name="Allowed"
        colour="allowed"
        value={rate('allowed')}
        unit="/s"
        note={`${plural(allAllowed, 'decision')} of limits`}
      />
      <Tile
        name="Refused"
        colour="refused"
        value={rate('refused')}
        unit="/s"
        note={`${plural(allRefused, 'decision')}, ${percent(allRefused, allAllowed + allRefused)}`}
      />
      <Tile
        name="Store, p99"
        value={milliseconds(lastKnown(series.store.p99))}
        note={half === null ? 'no check yet' : `half within ${milliseconds(half)}`}
      />
      <Tile name="Answered by fallback" value={percent(fallback, checks)} note={`of ${plural(checks, 'check')}`} />
      <Tile
        name="Instances"
        value={whole(instances.length)}
        note={
          isAlone({ ...overview, instances })
            ? 'the others could not be read'
            : open === 0
              ? 'no circuit is open'
              : `${plural(open, 'circuit')} open`
        }
      />
    </dl>
  );
}

export function Tile({
  name,
  colour,
  value,
  unit,
  note,
  text = false,
}: {
  name: string;
  colour?: 'allowed' | 'refused' | 'near' | 'other';
  value: string;
  unit?: string;
  note?: string;
  /** True if the value is text, which is set smaller than numbers. */
  text?: boolean;
}): JSX.Element {
  return (
    <div class="tile">
      <dt>
        {colour && <span class={`key ${colour}`} />}
        {name}
      </dt>
      <dd class={text ? 'value text' : 'value'}>
        {value}
        {unit && <small> {unit}</small>}
      </dd>
      {note && <dd class="note numbers">{note}</dd>}
    </div>
  );
}
