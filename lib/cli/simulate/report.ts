import type { Histogram } from './timeline.js';
import type { SimulatedLimit, Stretch } from './simulated-limit.js';
import type { Simulation } from './simulation.js';
import type { TrackedKey } from './tracked-keys.js';

const LISTED_KEYS = 10;

export type LimitReport = ReturnType<typeof limitReport>;

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
export type Report = ReturnType<typeof reportOf>;

export function reportOf(simulation: Simulation, input: InputReport) {
  const { allowed, refused, timeline } = simulation;
  return {
    // The late ones of those out of order came too late to be sorted: they are decided at the time of the previous request.
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
      /** The number of these whose counters were not empty: more requests may have been allowed than limits permit. */
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

function limitReport(simulated: SimulatedLimit) {
  const { limit, spec, worst } = simulated;
  return {
    name: limit.name,
    /** As written on the command line. */
    limit: spec,
    shadow: limit.shadow,
    quota: limit.quota,
    refused: simulated.refused,
    /** The number of these whose cost it can never allow. */
    neverAllowed: simulated.never,
    retryAfter: waitsOf(simulated.waits),
    ...(limit.algorithm.queue !== undefined && { held: waitsOf(simulated.delays) }),
    /** The period of its length in which one key was admitted the most units. */
    worstStretch: worst === undefined ? null : stretchOf(simulated, worst),
  };
}

function stretchOf({ lengthMs, isExact }: SimulatedLimit, { units, identity, from, to }: Stretch) {
  // Unless it is exact, the real number may be higher.
  return { lengthMs, units, key: identity, from: showTime(from), to: showTime(to), exact: isExact };
}

/** The keys with the most rejections; ties go to those with more requests. */
function topKeys({ keys, limits }: Simulation) {
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

function waitsOf(waits: Histogram) {
  return { count: waits.count, medianMs: waits.quantile(0.5), p99Ms: waits.quantile(0.99), maxMs: waits.max };
}

/** A time of microseconds, as an ISO date. */
function showTime(micros: number): string {
  return new Date(micros / 1000).toISOString();
}
