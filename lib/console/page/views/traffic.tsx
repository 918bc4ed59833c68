import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import type { Figures } from '../../api.js';
import { isAlone, sum, summed } from '../data/series.js';
import { clock, moment, perSecond } from '../data/format.js';
import { firstKnown, stepsIn, useZoom } from '../data/marks.js';
import { Chart } from '../parts/chart.js';
import type { ChartLine, ChartMark } from '../parts/chart-options.js';
import { Empty } from '../parts/small.js';

const MOST_MARKS = 5;

/** Allowed and rejected requests per second, for one limit or all. */
export function Traffic({
  overview,
  limit,
  quotaPerSecond,
  marks,
}: {
  overview: Figures;
  limit?: string;
  /** The rate that the limit allows one key in the long run. */
  quotaPerSecond?: number | undefined;
  marks?: readonly ChartMark[];
}): JSX.Element {
  const { series, stepMs } = overview;
  const [zoom, setZoom] = useZoom();
  const { from, to } = stepsIn(series.times, zoom);
  const isZoomed = to - from < series.times.length;
  const known = firstKnown(overview);
  const lines = useMemo(() => {
    const line = (field: 'allowed' | 'refused' | 'shadowRefused' | 'candidateRefused'): (number | null)[] =>
      summed(series, field, limit)
        .map((count, at) => (at < known ? null : (count * 1_000) / stepMs))
        .slice(from, to);
    const all: ChartLine[] = [
      { label: 'Allowed', colour: 'allowed', filled: true, values: line('allowed') },
      { label: 'Refused', colour: 'refused', filled: true, values: line('refused') },
    ];
    const [shadow, candidate] = [line('shadowRefused'), line('candidateRefused')];
    const total = (values: readonly (number | null)[]): number => sum(values.map((value) => value ?? 0));
    if (total(shadow) > 0) all.push({ label: 'Refused in shadow', colour: 'near', dashed: true, values: shadow });
    if (total(candidate) > 0) {
      all.push({ label: 'Candidate would refuse', colour: 'other', dashed: true, values: candidate });
    }
    if (quotaPerSecond !== undefined) {
      const values = Array.from({ length: to - from }, () => quotaPerSecond);
      all.push({ label: 'Quota of one key', colour: 'near', dashed: true, values });
    }
    return all;
  }, [series, stepMs, limit, from, to, known, quotaPerSecond]);
  const times = useMemo(() => series.times.slice(from, to), [series, from, to]);
  if (!isZoomed && lines.slice(0, 2).every(({ values }) => values.every((value) => value === 0 || value === null))) {
    if (isAlone(overview)) {
      return (
        <Empty icon="alert" title="Not known">
          The instance that serves this page counted no requests. The counts of the other instances could not be read.
        </Empty>
      );
    }
    return (
      <Empty icon="overview" title="No request was counted">
        {limit === undefined
          ? 'As soon as a request reaches a route that has a limit, it appears here within two seconds.'
          : `As soon as a request is counted by ${limit}, it appears here within two seconds.`}
      </Empty>
    );
  }
  const shown = (marks ?? []).filter(({ at }) => at >= (times[0] ?? Infinity) && at <= (times.at(-1) ?? 0) + stepMs);
  return (
    <>
      <Chart
        label={`Decisions per second${limit === undefined ? '' : ` of ${limit}`}`}
        times={times}
        lines={lines}
        format={perSecond}
        height={220}
        marks={shown}
        onZoom={(first, last) => setZoom({ from: first, to: last })}
      />
      {isZoomed && (
        <p class="zoomed small">
          From {moment(times[0]!)} to {moment(times.at(-1)!)}{' '}
          <button type="button" class="button small" onClick={() => setZoom(undefined)}>
            Show the whole range
          </button>
        </p>
      )}
      <Marks marks={shown} />
    </>
  );
}

/** The legend of the vertical lines in a chart, the newest first. */
function Marks({ marks }: { marks: readonly ChartMark[] }): JSX.Element | null {
  if (marks.length === 0) return null;
  const newest = marks.toSorted((one, other) => other.at - one.at);
  return (
    <ul class="marks small" aria-label="Marked in the chart">
      {newest.slice(0, MOST_MARKS).map(({ at, kind, label }) => (
        <li key={`${at} ${label}`}>
          <span class={`mark ${kind}`} /> <span class="soft numbers">{clock(at)}</span> {label}
        </li>
      ))}
    </ul>
  );
}
