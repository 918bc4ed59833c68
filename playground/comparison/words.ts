import { duration, spaced } from '../../lib/engine/util/figures.js';
import { type AlgorithmName, costOf, type Interval, type Settings } from '../simulation/settings.js';
import type { Pattern } from '../simulation/traffic.js';

/** What an interval is called, and how long it is. */
const INTERVAL_WORDS: Record<Interval, IntervalWords> = {
  '1s': { noun: 'second', unit: 's', ms: 1000 },
  '1m': { noun: 'minute', unit: 'min', ms: 60_000 },
  '1h': { noun: 'hour', unit: 'h', ms: 3_600_000 },
  '1d': { noun: 'day', unit: 'd', ms: 86_400_000 },
};

interface IntervalWords {
  readonly noun: string;
  readonly unit: string;
  readonly ms: number;
}

/** What ends a number of intervals. */
export function unitOf(interval: Interval): string {
  return INTERVAL_WORDS[interval].unit;
}

export function nounOf(interval: Interval): string {
  return INTERVAL_WORDS[interval].noun;
}

/** A time that is given in intervals, as the console writes it. */
export function showTime(intervals: number, interval: Interval): string {
  return spaced(duration(intervals * INTERVAL_WORDS[interval].ms));
}

export const PATTERN_WORDS: Record<Pattern, { readonly label: string; readonly meaning: string }> = {
  steady: { label: 'Steady', meaning: 'One request after another, evenly.' },
  burst: { label: 'Bursts', meaning: 'Many requests at once, then a pause.' },
  poisson: { label: 'Random', meaning: 'Each request comes independently of all others (a Poisson process).' },
  edge: { label: 'Edge', meaning: 'Equal numbers of requests just before and just after the end of a window.' },
  drawn: { label: 'Drawn', meaning: 'Drawn by hand, or with the arrow keys.' },
};

const BEHAVIOUR: Record<AlgorithmName, (settings: Settings) => string> = {
  'fixed-window': ({ interval }) => `Opens with a request, lasts one ${nounOf(interval)}, then starts again.`,
  'calendar-window': ({ interval }) => `Starts again with each calendar ${nounOf(interval)}.`,
  'sliding-window': ({ interval, slices }) =>
    `Counts the last ${nounOf(interval)} in ${slices === 1 ? 'one slice' : `${slices} slices`}.`,
  'sliding-log': ({ interval }) => `Counts the last ${nounOf(interval)} to the microsecond.`,
  'token-bucket': () => 'Tokens flow in evenly; a pause saves them up to the burst.',
  gcra: () => 'Even spacing, with room for a burst: one timestamp of state.',
  'leaky-bucket': () => 'Holds requests in a queue. They are drawn when they leave it.',
  concurrency: () => 'Counts requests in progress, no matter how long they take.',
  budget: (settings) => `Reserves ${costOf('budget', settings)} per request, then charges the 1 that was used.`,
};

/** What an algorithm does, in a line. */
export function behaviour(algorithm: AlgorithmName, settings: Settings): string {
  return BEHAVIOUR[algorithm](settings);
}
