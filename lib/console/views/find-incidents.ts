import type { Incident, IncidentKind, InstanceInfo } from '../api.js';
import { type Bucket, type LimitCounts, quantile } from '../telemetry/bucket.js';
import * as at from './incident-thresholds.js';

/** The counts of a step that are evaluated. Before the last minute, limits without rejections and near counters are left out. */
export interface JudgedStep {
  readonly limits: ReadonlyMap<string, Pick<LimitCounts, 'allowed' | 'refused' | 'near'>>;
  readonly checks: number;
  readonly failed: number;
  readonly latencies: ReadonlyMap<number, number>;
}

/** The data that incidents are detected in. */
export interface Evidence {
  /** Now, in milliseconds since the epoch. */
  readonly now: number;
  /** The last hour and the current step, the oldest first; `undefined` for a step without counts. */
  readonly steps: readonly (JudgedStep | undefined)[];
  /** When the first of these steps began. */
  readonly from: number;
  readonly running: readonly InstanceInfo[];
  readonly lost: readonly InstanceInfo[];
}

/** An incident whose keys are not known yet. */
export type FoundIncident = Incident extends infer One
  ? One extends Incident
    ? Omit<One, 'keys' | 'keysSince'>
    : never
  : never;

/** The part of a bucket that is evaluated. */
export function judged({ limits, checks, latencies }: Bucket, isRecent: boolean): JudgedStep {
  const bad = [...limits].filter(([, { refused, near }]) => isRecent || refused > 0 || near > 0);
  return {
    limits: new Map(bad.map(([label, { allowed, refused, near }]) => [label, { allowed, refused, near }])),
    checks: checks.checks,
    failed: checks.fallback,
    latencies,
  };
}

/** The incidents, the most severe first. The same evidence always yields the same incidents. */
export function findIncidents(evidence: Evidence): FoundIncident[] {
  const found = [
    ...ofCircuits(evidence),
    ...ofFallback(evidence),
    ...ofLimits(evidence),
    ...ofAdaptive(evidence),
    ...ofLatency(evidence),
    ...ofLost(evidence),
  ];
  return found.toSorted(byHarm).slice(0, at.MOST_INCIDENTS);
}

/** The kinds in order of their severity. */
const KINDS: readonly IncidentKind[] = ['circuit', 'fallback', 'refused', 'adaptive', 'lost', 'latency', 'near'];

function byHarm(one: FoundIncident, other: FoundIncident): number {
  return (
    Number(other.severity === 'critical') - Number(one.severity === 'critical') ||
    KINDS.indexOf(one.kind) - KINDS.indexOf(other.kind) ||
    weightOf(other) - weightOf(one) ||
    (one.id < other.id ? -1 : 1)
  );
}

function weightOf(incident: FoundIncident): number {
  if (incident.kind === 'refused') return incident.refused;
  if (incident.kind === 'near') return incident.near;
  if (incident.kind === 'adaptive') return incident.inFlight;
  return 0;
}

/** The steps of the last minute, and the seconds that they cover. */
function minuteOf({ steps, from, now }: Evidence) {
  const first = steps.length - 1 - at.MINUTE_STEPS;
  const recent = steps.slice(Math.max(0, first)).filter((step) => step !== undefined);
  return { recent, seconds: (now - (from + Math.max(0, first) * at.STEP_MS)) / 1000 };
}

/** When the last run of bad steps began. */
function sinceOf({ steps, from }: Evidence, isBad: (step: JudgedStep) => boolean) {
  let since: number | undefined;
  let good = 0;
  for (let index = steps.length - 1; index >= 0 && good < at.GOOD_STEPS; index--) {
    const step = steps[index];
    if (step !== undefined && isBad(step)) {
      since = index;
      good = 0;
      // The whole may be bad even if its last steps aren't.
    } else if (since !== undefined || index < steps.length - 1 - at.MINUTE_STEPS) good++;
  }
  const first = since ?? Math.max(0, steps.length - 1 - at.MINUTE_STEPS);
  return { since: from + first * at.STEP_MS, sinceEarlier: first === 0 };
}

function ofLimits(evidence: Evidence): FoundIncident[] {
  const { recent, seconds } = minuteOf(evidence);
  const sums = new Map<string, { allowed: number; refused: number; near: number }>();
  for (const { limits } of recent) {
    for (const [label, { allowed, refused, near }] of limits) {
      const sum = sums.get(label) ?? { allowed: 0, refused: 0, near: 0 };
      sums.set(label, { allowed: sum.allowed + allowed, refused: sum.refused + refused, near: sum.near + near });
    }
  }
  return [...sums].flatMap(([limit, sum]): FoundIncident[] => {
    const { allowed, refused, near } = sum;
    const share = refused / (allowed + refused || 1);
    const perSecond = refused / seconds;
    const of = (step: JudgedStep) => step.limits.get(limit) ?? { allowed: 0, refused: 0, near: 0 };
    if (refused >= at.REFUSED_LEAST && isRefusing(sum, seconds)) {
      const since = sinceOf(evidence, (step) => isRefusing(of(step), at.STEP_MS / 1000));
      const severity = share >= at.REFUSED_CRITICAL ? 'critical' : 'warning';
      return [
        { id: `refused ${limit}`, kind: 'refused', severity, limit, ...since, allowed, refused, share, perSecond },
      ];
    }
    if (near < at.NEAR_LEAST) return [];
    const since = sinceOf(evidence, (step) => of(step).near > 0);
    return [{ id: `near ${limit}`, kind: 'near', severity: 'warning', limit, ...since, allowed, refused, near }];
  });
}

function isRefusing({ allowed, refused }: { allowed: number; refused: number }, seconds: number): boolean {
  if (refused === 0) return false;
  return refused / (allowed + refused) >= at.REFUSED_SHARE || refused / seconds >= at.REFUSED_PER_SECOND;
}

function ofFallback(evidence: Evidence): FoundIncident[] {
  const { recent } = minuteOf(evidence);
  const checks = recent.reduce((sum, step) => sum + step.checks, 0);
  const failed = recent.reduce((sum, step) => sum + step.failed, 0);
  const share = failed / (checks || 1);
  if (failed < at.FALLBACK_LEAST || share < at.FALLBACK_SHARE) return [];
  const since = sinceOf(evidence, (step) => step.failed > 0 && step.failed >= at.FALLBACK_SHARE * step.checks);
  const severity = share >= at.FALLBACK_CRITICAL ? 'critical' : 'warning';
  return [{ id: 'fallback', kind: 'fallback', severity, ...since, checks, failed, share }];
}

function ofLatency(evidence: Evidence): FoundIncident[] {
  const { recent } = minuteOf(evidence);
  const before = evidence.steps.slice(0, -1 - at.MINUTE_STEPS).filter((step) => step !== undefined);
  const [p99, p99Before] = [p99Of(recent), p99Of(before)];
  if (p99 === null || p99Before === null) return [];
  const isSlow = (ms: number) => ms >= at.LATENCY_LEAST_MS && ms >= at.LATENCY_TIMES * p99Before;
  if (!isSlow(p99)) return [];
  const since = sinceOf(evidence, ({ latencies }) => isSlow(quantile(latencies, 0.99) ?? 0));
  const severity = p99 >= at.LATENCY_CRITICAL * p99Before ? 'critical' : 'warning';
  return [{ id: 'latency', kind: 'latency', severity, ...since, p99, p99Before }];
}

/** `null` if too few checks were timed. */
function p99Of(steps: readonly JudgedStep[]): number | null {
  const classes = new Map<number, number>();
  let samples = 0;
  for (const { latencies } of steps) {
    for (const [index, count] of latencies) {
      classes.set(index, (classes.get(index) ?? 0) + count);
      samples += count;
    }
  }
  return samples < at.LATENCY_SAMPLES ? null : quantile(classes, 0.99);
}

function ofCircuits({ running, now }: Evidence): FoundIncident[] {
  const open = running.filter(({ circuit }) => circuit === 'open');
  if (open.length === 0) return [];
  const since = Math.min(...open.map(({ circuitOpenSince = now }) => circuitOpenSince));
  const instances = open.map(({ id }) => id);
  return [{ id: 'circuit', kind: 'circuit', severity: 'critical', since, sinceEarlier: false, instances }];
}

function ofAdaptive({ running, now }: Evidence): FoundIncident[] {
  const limits = new Map<string, { since: number; admits: number; inFlight: number; instances: string[] }>();
  for (const { id, adaptive = {} } of running) {
    for (const [label, { limit: admits, inFlight, fullSince = now }] of Object.entries(adaptive)) {
      if (now - fullSince < at.FULL_MS) continue;
      const sum = limits.get(label) ?? { since: fullSince, admits: 0, inFlight: 0, instances: [] };
      limits.set(label, {
        since: Math.min(sum.since, fullSince),
        admits: sum.admits + admits,
        inFlight: sum.inFlight + inFlight,
        instances: [...sum.instances, id],
      });
    }
  }
  return [...limits].map(([limit, full]) => {
    return { id: `adaptive ${limit}`, kind: 'adaptive', severity: 'warning', limit, sinceEarlier: false, ...full };
  });
}

function ofLost({ lost }: Evidence): FoundIncident[] {
  return lost
    .toSorted((one, other) => other.lastSeenAt - one.lastSeenAt)
    .slice(0, at.MOST_LOST)
    .map((instance) => {
      const { id, lastSeenAt: since } = instance;
      return { id: `lost ${id}`, kind: 'lost', severity: 'warning', since, sinceEarlier: false, instance };
    });
}
