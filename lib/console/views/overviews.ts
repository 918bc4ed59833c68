import { setImmediate } from 'node:timers/promises';
import { consoleMessages } from '../../engine/errors/messages/console.js';
import { reasonOf } from '../../engine/errors/reasons.js';
import type { LimitSeries, LimitTotals, Overview, Range, Series, Tick } from '../api.js';
import { ConsoleProblem } from '../problem.js';
import {
  addBucket,
  type Bucket,
  CHECK_COUNTS,
  type CheckCounts,
  emptyBucket,
  LIMIT_COUNTS,
  type LimitCounts,
  quantile,
  readBucket,
} from '../telemetry/bucket.js';
import { type Command, type ConsoleClock, type ConsoleRedis, LOST_SHOWN_MS } from '../telemetry/console-redis.js';
import type { Recorder } from '../telemetry/recorder.js';
import { RESOLUTIONS, stepOf } from '../telemetry/timeline.js';
import { type FoundInstances, Instances } from './instances.js';
import type { RedisHealth } from './redis-health.js';

/** The characters to read at a time: about a millisecond. */
const CHARACTERS = 100_000;

export const RANGES = {
  '5m': RESOLUTIONS[0],
  '1h': RESOLUTIONS[1],
  '1d': RESOLUTIONS[2],
  '7d': RESOLUTIONS[3],
  '30d': RESOLUTIONS[4],
} as const satisfies Record<Range, object>;
/** The number of seconds in a tick, since an instance can be late. */
const TICK_STEPS = 5;
const SECOND_MS = 1000;
/** The approximate number of stored characters per limit and step. */
const CHARACTERS_A_LIMIT = 24;
/** Maximum number of steps of a length. */
const MOST_STEPS = Math.max(...RESOLUTIONS.map(({ steps }) => steps));

interface Reading extends FoundInstances {
  readonly steps: Steps;
  readonly problem: string | undefined;
}

/** Sums up the counts of all instances. */
export class Overviews {
  readonly instances: Instances;

  /** @param labels returns the labels of the declared limits */
  constructor(
    private readonly recorder: Recorder,
    private readonly clock: ConsoleClock,
    private readonly redis: ConsoleRedis | undefined,
    private readonly health: RedisHealth | undefined,
    private readonly labels: () => string[],
  ) {
    this.instances = new Instances(recorder, clock, redis);
  }

  async overview(range: Range): Promise<Overview> {
    const { stepMs, steps } = RANGES[range];
    const now = this.clock.now();
    const last = stepOf(now, stepMs) - stepMs;
    const from = last - (steps - 1) * stepMs;
    const [reading, redis] = await Promise.all([this.readAll(stepMs, from, steps), this.health?.look() ?? null]);
    return {
      at: Math.round(now),
      range,
      stepMs,
      series: reading.steps.series(from, last, stepMs),
      totals: reading.steps.totals(from),
      unknown: reading.steps.hiddenOf(this.labels()),
      ...shownOf(reading),
      redis,
    };
  }

  /** The newest complete seconds. */
  async tick(): Promise<Omit<Tick, 'incidents'>> {
    const now = this.clock.now();
    const last = stepOf(now, SECOND_MS) - SECOND_MS;
    const from = last - (TICK_STEPS - 1) * SECOND_MS;
    const [reading, redis] = await Promise.all([
      this.readSteps(SECOND_MS, from, last, LOST_SHOWN_MS),
      this.health?.look() ?? null,
    ]);
    return {
      at: Math.round(now),
      stepMs: SECOND_MS,
      series: reading.steps.series(from, last, SECOND_MS),
      ...shownOf(reading),
      redis,
    };
  }

  async lastHour(): Promise<Record<string, LimitTotals>> {
    const { stepMs, steps } = RANGES['1h'];
    const from = stepOf(this.clock.now(), stepMs) - steps * stepMs;
    const reading = await this.readAll(stepMs, from, steps);
    return reading.steps.totals(from);
  }

  private readAll(stepMs: number, from: number, steps: number): Promise<Reading> {
    const withinMs = steps * stepMs + LOST_SHOWN_MS;
    return this.read(stepMs, from, withinMs, (id, { keys }) => ['hgetall', keys.counts(id, stepMs)]);
  }

  /** Reads a range of steps of all instances that reported within `withinMs`. */
  readSteps(stepMs: number, from: number, to: number, withinMs: number): Promise<Reading> {
    const fields: number[] = [];
    for (let step = from; step <= to; step += stepMs) fields.push(step);
    return this.read(stepMs, from, withinMs, (id, { keys }) => ['hmget', keys.counts(id, stepMs), ...fields], fields);
  }

  /** Reads all instances, or only this one while Redis fails. `fields`: the fields for a command that returns only values. */
  private async read(
    stepMs: number,
    from: number,
    withinMs: number,
    command: (id: string, redis: ConsoleRedis) => Command,
    fields?: readonly number[],
  ): Promise<Reading> {
    const values = fields?.length ?? MOST_STEPS;
    let characters = 0;
    // Lets requests of the app run while a lot is being read.
    const turn = async (read: number): Promise<void> => {
      characters += read;
      if (characters < CHARACTERS) return;
      characters = 0;
      await setImmediate();
    };
    let steps = new Steps();
    const begin = () => void (steps = new Steps());
    let found: FoundInstances;
    let problem: string | undefined;
    try {
      found = await this.instances.read(withinMs, values, command, begin, async ({ id, reply }) => {
        if (reply === null) return false;
        let isWhole = true;
        for (const [index, text] of Object.entries((reply ?? {}) as Record<string, string | null>)) {
          const step = fields === undefined ? Number(index) : fields[Number(index)]!;
          if (text === null || !(step >= from)) continue;
          await turn(text.length);
          const bucket = readBucket(text);
          if (bucket === undefined) isWhole = false;
          else steps.add(step, bucket, id);
        }
        return isWhole;
      });
    } catch (error) {
      // Some of the instances would look like all of them.
      begin();
      // Without any data, it would look as if there were no requests.
      if (this.recorder.observes) throw new ConsoleProblem(503, consoleMessages.unobservable(reasonOf(error)));
      found = this.instances.alone();
      problem = consoleMessages.unreachable(reasonOf(error));
    }
    const unstored = this.redis === undefined ? undefined : this.recorder.problem;
    if (unstored !== undefined) problem ??= consoleMessages.unstored(unstored);
    const { self } = this.recorder;
    const own: Iterable<[number, Bucket]> = this.recorder.timeline.since(stepMs, from);
    for (const [step, bucket] of own) {
      if (fields !== undefined && !fields.includes(step)) continue;
      await turn(bucket.limits.size * CHARACTERS_A_LIMIT);
      steps.add(step, bucket, self.id);
    }
    return { ...found, steps, problem };
  }
}

function shownOf({ running, lost, coverage, problem }: Reading) {
  return { instances: running, lost, coverage, problem };
}

/** The counts of several instances, by step. */
class Steps {
  private readonly buckets = new Map<number, Bucket>();

  /** By instance: the labels that it counted separately, and if it counted other declared limits together. */
  private readonly sources = new Map<string, { labels: Set<string>; hides: boolean }>();

  /** @param source the instance whose counts these are */
  add(step: number, bucket: Bucket, source: string): void {
    let known = this.sources.get(source);
    if (known === undefined) this.sources.set(source, (known = { labels: new Set(), hides: false }));
    for (const label of bucket.limits.keys()) known.labels.add(label);
    known.hides ||= bucket.hides;
    let sum = this.buckets.get(step);
    if (sum === undefined) this.buckets.set(step, (sum = emptyBucket()));
    addBucket(sum, bucket);
  }

  at(step: number): Bucket | undefined {
    return this.buckets.get(step);
  }

  /** Those of the labels whose decisions an instance may have counted only as `(others)`. */
  hiddenOf(labels: readonly string[]): string[] {
    const hiding = [...this.sources.values()].filter(({ hides }) => hides);
    return hiding.length === 0 ? [] : labels.filter((label) => hiding.some((each) => !each.labels.has(label)));
  }

  /** The numbers of the steps in a range, without gaps. */
  series(from: number, to: number, stepMs: number): Series {
    const times: number[] = [];
    for (let time = from; time <= to; time += stepMs) times.push(time);
    const buckets = times.map((time) => this.buckets.get(time));
    const labels = new Set(buckets.flatMap((bucket) => [...(bucket?.limits.keys() ?? [])]));
    const checks = CHECK_COUNTS.map((name) => [name, buckets.map((bucket) => bucket?.checks[name] ?? 0)]);
    const took = (part: number) => buckets.map((bucket) => (bucket ? quantile(bucket.latencies, part) : null));
    return {
      times,
      limits: Object.fromEntries([...labels].map((label) => [label, seriesOf(label, buckets)])),
      store: {
        p50: took(0.5),
        p99: took(0.99),
        ...(Object.fromEntries(checks) as Record<keyof CheckCounts, number[]>),
      },
    };
  }

  totals(from: number): Record<string, LimitTotals> {
    const all = emptyBucket();
    for (const [step, bucket] of this.buckets) if (step >= from) addBucket(all, bucket);
    return Object.fromEntries(
      [...all.limits].map(([label, { looks: _, admits: _admits, inFlight: _inFlight, ...counts }]) => [label, counts]),
    );
  }
}

const OF_ADAPTIVE: readonly (keyof LimitCounts)[] = ['looks', 'admits', 'inFlight'];

function seriesOf(label: string, buckets: readonly (Bucket | undefined)[]): LimitSeries {
  const rows = buckets.map((bucket) => bucket?.limits.get(label));
  const of = (name: keyof LimitCounts) => rows.map((counts) => counts?.[name] ?? 0);
  // Only adaptive limits have samples.
  const isAdaptive = rows.some((counts) => (counts?.looks ?? 0) > 0);
  const names = LIMIT_COUNTS.filter((name) => isAdaptive || !OF_ADAPTIVE.includes(name));
  return Object.fromEntries(names.map((name) => [name, of(name)])) as unknown as LimitSeries;
}
