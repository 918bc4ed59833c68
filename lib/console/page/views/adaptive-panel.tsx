import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import type { Figures } from '../../api.js';
import { milliseconds, perSecond } from '../data/format.js';
import { ofLimit } from '../data/series.js';
import { Chart } from '../parts/chart.js';
import type { ChartLine } from '../parts/chart-options.js';
import { Panel } from '../parts/small.js';

/** The admitted units of an adaptive limit, those in flight, and how long they took, over time. */
export function AdaptivePanel({ limit, overview }: { limit: string; overview: Figures }): JSX.Element | null {
  const { series, stepMs } = overview;
  const of = ofLimit(series.limits, limit);
  const shown = useMemo(() => {
    const { looks = [], admits = [], inFlight = [], allowed = [] } = of ?? {};
    const each = (value: (at: number) => number) => looks.map((count, at) => (count === 0 ? null : value(at)));
    const mean = (sums: readonly number[]) => each((at) => sums[at]! / looks[at]!);
    // Little's law: units in flight divided by units per second.
    const took = each((at) => (inFlight[at]! * 1_000) / Math.max(1, allowed[at]!)).map((value, at) =>
      allowed[at] === 0 ? null : value,
    );
    const units: ChartLine[] = [
      { label: 'Admits', colour: 'near', dashed: true, values: mean(admits) },
      { label: 'In flight', colour: 'allowed', filled: true, values: mean(inFlight) },
    ];
    const times: ChartLine[] = [{ label: 'Time in flight', colour: 'other', values: took }];
    return { units, times, isKnown: looks.length > 0 };
  }, [of, stepMs]);
  if (!shown.isKnown) return null;
  return (
    <div class="columns">
      <Panel id="in-flight" title="In flight" note="Per instance, averaged over the instances that used it.">
        <Chart
          label={`In flight of ${limit}`}
          times={series.times}
          lines={shown.units}
          format={perSecond}
          height={160}
        />
      </Panel>
      <Panel
        id="in-flight-for"
        title="Time in flight"
        note="The mean, calculated from requests in flight and requests per second."
      >
        <Chart
          label={`Time in flight of ${limit}`}
          times={series.times}
          lines={shown.times}
          format={milliseconds}
          height={160}
        />
      </Panel>
    </div>
  );
}
