import type { Histogram } from './timeline.js';
import type { SimulatedLimit, Stretch } from './simulated-limit.js';
import type { Simulation } from './simulation.js';
import type { TrackedKey } from './tracked-keys.js';

const LISTED_KEYS = 10;

/** The waits of requests, in milliseconds. */
export interface Waits {
  readonly count: number;
  readonly medianMs: number;
  readonly p99Ms: number;
  readonly maxMs: number;
}

/** The results of a limit. */
export interface LimitReport {
  readonly name: string;
  /** As written on the command line. */
  readonly limit: string;
  readonly shadow: boolean;
  readonly quota: number;
  readonly refused: number;
  /** The number of these whose cost it can never allow. */
  readonly neverAllowed: number;
  readonly retryAfter: Waits;
  /** The delays of requests, if it delays them. */
  readonly held?: Waits;
  /** The period of its length in which one key was admitted the most units; `null` without any. */
  readonly worstStretch: {
    readonly lengthMs: number;
    readonly units: number;
    readonly key: string;
    readonly from: string;
    readonly to: string;
    /** `false` if the real number may be higher. */
    readonly exact: boolean;
  } | null;
}

/** The results of a key. */
export interface KeyReport {
  readonly key: string;
  readonly allowed: number;
  readonly refused: number;
  /** By each limit that uses this key. */
  readonly refusedBy: readonly { readonly limit: string; readonly refused: number }[];
}

/** A line that is not a request. */
export interface SkippedLine {
  readonly line: number;
  readonly reason: string;
  readonly text: string;
}

/** Where the requests come from. */
export interface InputReport {
  readonly source: string;
  readonly format: string | null;
  readonly lines: number;
  /** Lines that filters leave out; absent without filters. */
  readonly filtered?: number;
  readonly skipped: { readonly count: number; readonly first: readonly SkippedLine[] };
  /** Lines whose time is before that of an earlier line. */
  readonly outOfOrder: number;
}

/** The whole report of a simulation, also its JSON. */
export interface Report {
  readonly input: InputReport & {
    /** How many of the requests out of order came too late to be sorted. They are decided at the time of the previous request. */
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
    /** The number of these whose counters were not empty: more requests may have been allowed than limits permit. */
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

export function reportOf(simulation: Simulation, input: InputReport): Report {
  const { allowed, refused, timeline } = simulation;
  return {
    input: { ...input, late: simulation.late },
    from: showTime(simulation.start ?? 0),
    to: showTime(simulation.now),
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
    ...(limit.algorithm.queue !== undefined && { held: waitsOf(simulated.delays) }),
    worstStretch: worst === undefined ? null : stretchOf(simulated, worst),
  };
}

function stretchOf(
  { lengthMs, isExact }: SimulatedLimit,
  { units, identity, from, to }: Stretch,
): LimitReport['worstStretch'] {
  return { lengthMs, units, key: identity, from: showTime(from), to: showTime(to), exact: isExact };
}

/** The keys with the most rejections; ties go to those with more requests. */
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

function byRefused(one: TrackedKey, other: TrackedKey): number {
  const difference = other.refused - one.refused || other.allowed - one.allowed;
  return difference || (one.identity < other.identity ? -1 : 1);
}

function waitsOf(waits: Histogram): Waits {
  return { count: waits.count, medianMs: waits.quantile(0.5), p99Ms: waits.quantile(0.99), maxMs: waits.max };
}

/** Formats microseconds since the epoch as an ISO date. */
function showTime(micros: number): string {
  return new Date(micros / 1000).toISOString();
}
