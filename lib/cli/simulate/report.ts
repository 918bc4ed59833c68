import type { Histogram } from './histogram.js';
import type { SimulatedLimit } from './simulated-limit.js';
import type { Simulation } from './simulation.js';

/** So many keys are listed. */
const LISTED_KEYS = 10;

/** How long requests wait, in milliseconds. */
export interface Waits {
  readonly count: number;
  readonly medianMs: number;
  readonly p99Ms: number;
  readonly maxMs: number;
}

/** What a limit did. */
export interface LimitReport {
  readonly name: string;
  /** As it stands on the command line. */
  readonly limit: string;
  readonly shadow: boolean;
  readonly quota: number;
  readonly refused: number;
  /** Of these the requests whose cost it never allows. */
  readonly neverAllowed: number;
  readonly retryAfter: Waits;
  /** How long it holds requests, if it does. */
  readonly held?: Waits;
  /** The stretch of its length in which one key was admitted most; nothing if none was. */
  readonly worstStretch: {
    readonly lengthMs: number;
    readonly units: number;
    readonly key: string;
    readonly from: string;
    readonly to: string;
    /** False if it may have been more. */
    readonly exact: boolean;
  } | null;
}

/** What became of a key. */
export interface KeyReport {
  readonly key: string;
  readonly allowed: number;
  readonly refused: number;
  /** By the limits that have this key. */
  readonly refusedBy: readonly { readonly limit: string; readonly refused: number }[];
}

/** A line that is no request. */
export interface SkippedLine {
  readonly line: number;
  readonly reason: string;
  readonly text: string;
}

/** Where the requests came from. */
export interface InputReport {
  readonly source: string;
  readonly format: string | null;
  readonly lines: number;
  readonly skipped: { readonly count: number; readonly first: readonly SkippedLine[] };
  /** Lines whose time was before that of a line before them. */
  readonly outOfOrder: number;
}

/** All that is told of a simulation; the JSON is this. */
export interface Report {
  readonly input: InputReport & {
    /** Of those out of order: too late to be sorted in, so decided at the time of the one before. */
    readonly late: number;
  };
  readonly from: string;
  readonly to: string;
  readonly requests: number;
  readonly allowed: number;
  readonly refused: number;
  readonly retryAfter: Waits;
  readonly limits: readonly LimitReport[];
  readonly keys: {
    readonly seen: number;
    readonly forgotten: number;
    /** Of these, keys whose counters were not back at their beginning: more may have been allowed than limits say. */
    readonly forgottenCounting: number;
    readonly top: readonly KeyReport[];
  };
  readonly timeline: {
    readonly from: string;
    readonly stepMs: number;
    readonly allowed: readonly number[];
    readonly refused: readonly number[];
  };
}

/** Sums a simulation up. */
export function reportOf(simulation: Simulation, input: InputReport): Report {
  const { allowed, refused, timeline } = simulation;
  return {
    input: { ...input, late: simulation.late },
    from: isoOf(simulation.start ?? 0),
    to: isoOf(simulation.end),
    requests: allowed + refused,
    allowed,
    refused,
    retryAfter: waitsOf(simulation.waits),
    limits: simulation.limits.map(limitReport),
    keys: {
      seen: simulation.keys.seen,
      forgotten: simulation.evicted,
      forgottenCounting: simulation.evictedCounting,
      top: topKeys(simulation),
    },
    timeline: {
      from: new Date(timeline.startMs).toISOString(),
      stepMs: timeline.stepMs,
      allowed: timeline.allowed,
      refused: timeline.refused,
    },
  };
}

function limitReport(simulated: SimulatedLimit): LimitReport {
  const { limit, spec, worst } = simulated;
  return {
    name: limit.name,
    limit: spec,
    shadow: limit.shadow,
    quota: limit.quota,
    refused: simulated.refused,
    neverAllowed: simulated.never,
    retryAfter: waitsOf(simulated.waits),
    ...(limit.algorithm.queue === undefined ? {} : { held: waitsOf(simulated.delays) }),
    worstStretch:
      worst === undefined
        ? null
        : {
            lengthMs: simulated.lengthMs,
            units: worst.units,
            key: worst.identity,
            from: isoOf(worst.from),
            to: isoOf(worst.to),
            exact: simulated.isExact,
          },
  };
}

/** The keys that were refused most often; of equal ones those with more requests. */
function topKeys({ keys, limits }: Simulation): KeyReport[] {
  const top = [];
  for (const key of keys.values()) {
    if (key.refused === 0) continue;
    top.push(key);
    if (top.length < 100 * LISTED_KEYS) continue;
    top.sort(byRefused).length = LISTED_KEYS;
  }
  return top
    .sort(byRefused)
    .slice(0, LISTED_KEYS)
    .map(({ identity, allowed, refused, refusedBy, source }) => ({
      key: identity,
      allowed,
      refused,
      refusedBy: limits
        .filter((limit) => limit.source === source)
        .map(({ limit, place }) => ({ limit: limit.name, refused: refusedBy[place]! })),
    }));
}

interface Refused {
  readonly identity: string;
  readonly allowed: number;
  readonly refused: number;
}

function byRefused(one: Refused, other: Refused): number {
  const difference = other.refused - one.refused || other.allowed - one.allowed;
  return difference || (one.identity < other.identity ? -1 : 1);
}

function waitsOf(waits: Histogram): Waits {
  return { count: waits.count, medianMs: waits.quantile(0.5), p99Ms: waits.quantile(0.99), maxMs: waits.max };
}

/** Microseconds in UTC. */
function isoOf(micros: number): string {
  return new Date(Math.floor(micros / 1000)).toISOString();
}
