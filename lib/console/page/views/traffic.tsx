import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import type { Overview } from '../../api.js';
import { isAlone } from '../data/alone.js';
import { perSecond } from '../data/format.js';
import { sum, summed } from '../data/series.js';
import { Chart } from '../parts/chart.js';
import type { ChartLine } from '../parts/chart-line.js';
import { Empty } from '../parts/small.js';

/** Allowed and refused requests per second, for all limits or for one. */
export function Traffic({ overview, limit }: { overview: Omit<Overview, 'range'>; limit?: string }): JSX.Element {
  const { series, stepMs } = overview;
  const lines = useMemo(() => {
    const line = (field: 'allowed' | 'refused' | 'shadowRefused' | 'candidateRefused'): number[] =>
      summed(series, field, limit).map((count) => (count * 1_000) / stepMs);
    const all: ChartLine[] = [
      { label: 'Allowed', colour: 'allowed', filled: true, values: line('allowed') },
      { label: 'Refused', colour: 'refused', filled: true, values: line('refused') },
    ];
    const [shadow, candidate] = [line('shadowRefused'), line('candidateRefused')];
    if (sum(shadow) > 0) all.push({ label: 'Refused in shadow', colour: 'near', dashed: true, values: shadow });
    if (sum(candidate) > 0) {
      all.push({ label: 'Candidate would refuse', colour: 'other', dashed: true, values: candidate });
    }
    return all;
  }, [series, stepMs, limit]);
  if (lines.every(({ values }) => values.every((value) => value === 0))) {
    if (isAlone(overview)) {
      return (
        <Empty icon="alert" title="Not known">
          The instance that answers you counted no request. What the others counted could not be read.
        </Empty>
      );
    }
    return (
      <Empty icon="overview" title="No request was counted">
        {limit === undefined
          ? 'As soon as a request reaches a route that has a limit, it shows here within two seconds.'
          : `As soon as a request is counted by ${limit}, it shows here within two seconds.`}
      </Empty>
    );
  }
  return (
    <Chart
      label={`Decisions a second${limit === undefined ? '' : ` of ${limit}`}`}
      times={series.times}
      lines={lines}
      format={perSecond}
      height={240}
    />
  );
}
