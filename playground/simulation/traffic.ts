import { oneOf } from '../../lib/engine/options/check-options.js';
import { randomNumbers } from '../../lib/cli/simulate/random-numbers.js';

/** How requests come. */
export const PATTERNS = ['steady', 'burst', 'poisson', 'edge', 'drawn'] as const;

export type Pattern = (typeof PATTERNS)[number];

/** How many intervals a simulation lasts. */
export const SPAN = 4;

/** Into how many columns the time is cut where traffic is drawn: those of one interval times `SPAN`. */
export const COLUMNS = 16 * SPAN;

/** Requests to come. */
export interface Traffic {
  readonly pattern: Pattern;
  /** Units that the limits allow an interval. */
  readonly rate: number;
  /** The length of the interval in microseconds. */
  readonly interval: number;
  /** Requests an interval, in percent of the rate; of `edge`, those on each side of it. */
  readonly load: number;
  /** Tells random arrivals from others: the same ones come for the same seed. */
  readonly seed: number;
  /** Of `drawn`: how many requests come in each column. */
  readonly drawing: readonly number[];
}

/** How close the requests of a burst come, as a share of the interval. */
const BURST_LENGTH = 0.1;

/** How far bursts are apart, as a share of the interval: not a whole one, so that they do not come at the same time of each window. */
const BURST_SPACING = 0.75;

/** Reads the name of a pattern. Throws `RateLimitConfigError`. */
export function readPattern(given: unknown, location: string): Pattern {
  return oneOf(location, 'pattern', given, PATTERNS);
}

/** When requests come: whole microseconds since the beginning, in order. */
export function arrivalsOf(traffic: Traffic): number[] {
  const { interval } = traffic;
  return PLANS[traffic.pattern](traffic)
    .map((at) => Math.floor(at * interval))
    .filter((at) => at < SPAN * interval)
    .toSorted((one, other) => one - other);
}

/** The traffic as columns of a drawing: how many requests come in each. */
export function columnsOf(traffic: Traffic): number[] {
  const columns = Array.from({ length: COLUMNS }, () => 0);
  const width = (SPAN * traffic.interval) / COLUMNS;
  for (const at of arrivalsOf(traffic)) columns[Math.floor(at / width)]! += 1;
  return columns;
}

/** Each gives times in intervals. */
const PLANS: Record<Pattern, (traffic: Traffic) => number[]> = {
  steady(traffic) {
    const perInterval = requestsOf(traffic);
    return evenly(perInterval * SPAN, 0, SPAN);
  },
  burst(traffic) {
    const each = Math.max(1, Math.round(requestsOf(traffic) * BURST_SPACING));
    const starts = Array.from({ length: Math.ceil(SPAN / BURST_SPACING) }, (_, index) => 0.2 + index * BURST_SPACING);
    return starts.flatMap((start) => evenly(each, start, BURST_LENGTH));
  },
  poisson(traffic) {
    const random = randomNumbers(traffic.seed);
    const perInterval = requestsOf(traffic);
    const times: number[] = [];
    for (let at = 0; at < SPAN;) {
      at -= Math.log(1 - random()) / perInterval;
      times.push(at);
    }
    return times;
  },
  // A request opens each window, so that its edge is that of the calendar's, too.
  edge(traffic) {
    const each = requestsOf(traffic);
    const edges = Array.from({ length: SPAN / 2 }, (_, index) => 2 * index + 1);
    return edges.flatMap((edge) => [
      edge - 1,
      ...evenly(each, edge - BURST_LENGTH, BURST_LENGTH),
      edge,
      ...evenly(each - 1, edge, BURST_LENGTH),
    ]);
  },
  drawn({ drawing }) {
    const width = SPAN / COLUMNS;
    return drawing.slice(0, COLUMNS).flatMap((count, column) => evenly(count, column * width, width));
  },
};

function requestsOf({ rate, load }: Traffic): number {
  return Math.max(1, Math.round((rate * load) / 100));
}

/** So many times, each in the middle of its share of a stretch. */
function evenly(count: number, start: number, length: number): number[] {
  return Array.from({ length: count }, (_, index) => start + ((index + 0.5) * length) / count);
}
