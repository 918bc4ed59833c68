import type { Incident, IncidentKind, Incidents, InstanceInfo, Tick } from '../api.js';
import { type Bucket, type LimitCounts, quantile } from '../telemetry/bucket.js';
import { type ConsoleClock, LOST_SHOWN_MS } from '../telemetry/console-redis.js';
import { stepOf } from '../telemetry/timeline.js';
import type { Overviews } from './overviews.js';
import type { TopLists } from './top-lists.js';

// The thresholds of incidents. Counts are those of the last minute: the current step of 15 seconds, and the four before.

/** The length of a step that is evaluated. */
export const STEP_MS = 15_000;
/** The steps of the last minute before the current one. */
const MINUTE_STEPS = 4;
/** The number of steps that are compared with the last minute, and searched for the beginning of an incident: an hour. */
export const HOUR_STEPS = 240;
/** This many steps in a row without a problem end a run of bad steps. */
const GOOD_STEPS = 4;

/** A limit has an incident if it rejected at least this many decisions … */
const REFUSED_LEAST = 10;
/** … and at least this share of them, from 0 to 1 … */
const REFUSED_SHARE = 0.05;
/** … or at least this many per second. */
const REFUSED_PER_SECOND = 10;
/** The share from which it is critical. */
const REFUSED_CRITICAL = 0.25;

/** Counters of a limit are near their quota if this many times one of them reached its share `nearLimit`. */
const NEAR_LEAST = 10;

/** The store fails if it did not answer at least this many checks, and at least this share of them. */
const FALLBACK_LEAST = 5;
const FALLBACK_SHARE = 0.01;
/** The share from which it is critical. */
const FALLBACK_CRITICAL = 0.25;

/** Checks are slow if their 99th percentile is at least this many times that of the hour before … */
const LATENCY_TIMES = 3;
/** … and at least this many milliseconds. Only a sample of checks is timed; the last number is the minimum size of the sample. */
const LATENCY_LEAST_MS = 5;
const LATENCY_SAMPLES = 20;
/** The factor from which it is critical. */
const LATENCY_CRITICAL = 10;

/** An adaptive limit is overloaded if it is full for this long, in milliseconds. */
const FULL_MS = 5000;

/** Maximum number of incidents, of lost instances among them, and of keys per incident. */
const MOST_INCIDENTS = 50;
const MOST_LOST = 10;
const MOST_KEYS = 5;

/** Incidents are reused for this long, in milliseconds, because several viewers request the same. */
const SHARED_MS = 500;

export class IncidentViews {
  /** The known steps of the last hour. They include all limits only in the last minute. */
  private readonly known = new Map<number, JudgedStep | undefined>();
  private last: { readonly at: number; readonly found: Promise<Incidents> } | undefined;

  constructor(
    private readonly overviews: Overviews,
    private readonly top: TopLists,
    private readonly clock: ConsoleClock,
  ) {}

  /** Never rejects because of Redis. */
  now(): Promise<Incidents> {
    const at = this.clock.now();
    if (this.last === undefined || Math.abs(at - this.last.at) > SHARED_MS) this.last = { at, found: this.find(at) };
    return this.last.found;
  }

  /** The newest complete seconds, and the active incidents. */
  async tick(): Promise<Tick> {
    const [tick, { incidents }] = await Promise.all([this.overviews.tick(), this.now()]);
    return { ...tick, incidents };
  }

  private async find(now: number): Promise<Incidents> {
    const current = stepOf(now, STEP_MS);
    const from = current - HOUR_STEPS * STEP_MS;
    for (const step of this.known.keys()) if (step < from) this.known.delete(step);
    let first = from;
    // The steps of the last minute are read again, because an instance can be late.
    while (first < current - MINUTE_STEPS * STEP_MS && this.known.has(first)) first += STEP_MS;
    const reading = await this.overviews.readSteps(STEP_MS, first, current, current - first + LOST_SHOWN_MS);
    const { running, lost, coverage, problem } = reading;
    // Steps of one instance alone don't represent all instances.
    if (problem !== undefined) this.known.clear();
    const steps: (JudgedStep | undefined)[] = [];
    for (let step = from; step <= current; step += STEP_MS) {
      if (step >= first || problem !== undefined) {
        const bucket = reading.steps.at(step);
        const isRecent = step >= current - MINUTE_STEPS * STEP_MS;
        this.known.set(step, bucket && judged(bucket, isRecent));
      }
      steps.push(this.known.get(step));
    }
    if (problem !== undefined) this.known.clear();
    const found = findIncidents({ now, steps, from, running, lost });
    return {
      at: Math.round(now),
      windowMs: Math.round(now - (current - MINUTE_STEPS * STEP_MS)),
      incidents: await this.withKeys(found),
      coverage,
      problem,
    };
  }

  private async withKeys(found: readonly FoundIncident[]): Promise<Incident[]> {
    if (!found.some((each) => 'limit' in each)) return found as Incident[];
    const { published } = await this.top.read();
    return found.map((each): Incident => {
      if (!('limit' in each)) return each;
      const { keys, since } = this.top.refusedOf(each.limit, published, MOST_KEYS);
      return { ...each, keys, keysSince: since };
    });
  }
}

/** The counts of a step that are evaluated. Before the last minute, limits without rejections and near counters are left out. */
export interface JudgedStep {
  readonly limits: ReadonlyMap<string, Pick<LimitCounts, 'allowed' | 'refused' | 'near'>>;
  readonly checks: number;
  readonly failed: number;
  readonly latencies: ReadonlyMap<number, number>;
}

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
type FoundIncident = Incident extends infer One
  ? One extends Incident
    ? Omit<One, 'keys' | 'keysSince'>
    : never
  : never;

/** The part of a bucket that is evaluated. */
function judged({ limits, checks, latencies }: Bucket, isRecent: boolean): JudgedStep {
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
  return found.toSorted(byHarm).slice(0, MOST_INCIDENTS);
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
  const first = steps.length - 1 - MINUTE_STEPS;
  const recent = steps.slice(Math.max(0, first)).filter((step) => step !== undefined);
  return { recent, seconds: (now - (from + Math.max(0, first) * STEP_MS)) / 1000 };
}

/** When the last run of bad steps began. */
function sinceOf({ steps, from }: Evidence, isBad: (step: JudgedStep) => boolean) {
  let since: number | undefined;
  let good = 0;
  for (let index = steps.length - 1; index >= 0 && good < GOOD_STEPS; index--) {
    const step = steps[index];
    if (step !== undefined && isBad(step)) {
      since = index;
      good = 0;
      // The whole may be bad even if its last steps aren't.
    } else if (since !== undefined || index < steps.length - 1 - MINUTE_STEPS) good++;
  }
  const first = since ?? Math.max(0, steps.length - 1 - MINUTE_STEPS);
  return { since: from + first * STEP_MS, sinceEarlier: first === 0 };
}

function ofLimits(evidence: Evidence): FoundIncident[] {
  const { recent, seconds } = minuteOf(evidence);
  const none = { allowed: 0, refused: 0, near: 0 };
  const sums = new Map<string, typeof none>();
  for (const { limits } of recent) {
    for (const [label, { allowed, refused, near }] of limits) {
      const sum = sums.get(label) ?? none;
      sums.set(label, { allowed: sum.allowed + allowed, refused: sum.refused + refused, near: sum.near + near });
    }
  }
  return [...sums].flatMap(([limit, sum]): FoundIncident[] => {
    const { allowed, refused, near } = sum;
    const share = refused / (allowed + refused || 1);
    const perSecond = refused / seconds;
    const of = (step: JudgedStep) => step.limits.get(limit) ?? none;
    if (refused >= REFUSED_LEAST && isRefusing(sum, seconds)) {
      const since = sinceOf(evidence, (step) => isRefusing(of(step), STEP_MS / 1000));
      const severity = share >= REFUSED_CRITICAL ? 'critical' : 'warning';
      return [
        { id: `refused ${limit}`, kind: 'refused', severity, limit, ...since, allowed, refused, share, perSecond },
      ];
    }
    if (near < NEAR_LEAST) return [];
    const since = sinceOf(evidence, (step) => of(step).near > 0);
    return [{ id: `near ${limit}`, kind: 'near', severity: 'warning', limit, ...since, allowed, refused, near }];
  });
}

function isRefusing({ allowed, refused }: { allowed: number; refused: number }, seconds: number): boolean {
  if (refused === 0) return false;
  return refused / (allowed + refused) >= REFUSED_SHARE || refused / seconds >= REFUSED_PER_SECOND;
}

function ofFallback(evidence: Evidence): FoundIncident[] {
  const { recent } = minuteOf(evidence);
  const checks = recent.reduce((sum, step) => sum + step.checks, 0);
  const failed = recent.reduce((sum, step) => sum + step.failed, 0);
  const share = failed / (checks || 1);
  if (failed < FALLBACK_LEAST || share < FALLBACK_SHARE) return [];
  const since = sinceOf(evidence, (step) => step.failed > 0 && step.failed >= FALLBACK_SHARE * step.checks);
  const severity = share >= FALLBACK_CRITICAL ? 'critical' : 'warning';
  return [{ id: 'fallback', kind: 'fallback', severity, ...since, checks, failed, share }];
}

function ofLatency(evidence: Evidence): FoundIncident[] {
  const { recent } = minuteOf(evidence);
  const before = evidence.steps.slice(0, -1 - MINUTE_STEPS).filter((step) => step !== undefined);
  const [p99, p99Before] = [p99Of(recent), p99Of(before)];
  if (p99 === null || p99Before === null) return [];
  const isSlow = (ms: number) => ms >= LATENCY_LEAST_MS && ms >= LATENCY_TIMES * p99Before;
  if (!isSlow(p99)) return [];
  const since = sinceOf(evidence, ({ latencies }) => isSlow(quantile(latencies, 0.99) ?? 0));
  const severity = p99 >= LATENCY_CRITICAL * p99Before ? 'critical' : 'warning';
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
  return samples < LATENCY_SAMPLES ? null : quantile(classes, 0.99);
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
      if (now - fullSince < FULL_MS) continue;
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
    .slice(0, MOST_LOST)
    .map((instance) => {
      const { id, lastSeenAt: since } = instance;
      return { id: `lost ${id}`, kind: 'lost', severity: 'warning', since, sinceEarlier: false, instance };
    });
}
