import { reasonOf } from '../../util/reason-of.js';
import { consoleMessages } from '../../errors/messages/console.js';
import type { InstanceInfo, LimitTotals, Overview, Range, Tick } from '../api.js';
import { readBucket } from '../telemetry/bucket.js';
import type { ConsoleClock } from '../telemetry/console-clock.js';
import type { Command, ConsoleRedis } from '../telemetry/console-redis.js';
import type { Recorder } from '../telemetry/recorder.js';
import { RESOLUTIONS, stepOf } from '../telemetry/timeline.js';
import { inOrder, Instances } from './instances.js';
import type { RedisHealth } from './redis-health.js';
import { Steps } from './series.js';

const RANGES = { '5m': RESOLUTIONS[0], '1h': RESOLUTIONS[1], '1d': RESOLUTIONS[2] } as const;
/** The seconds in a tick: an instance can be late. */
const TICK_STEPS = 5;
const SECOND_MS = 1000;
/** How long an instance that has stopped is shown. */
const SHOWN_MS = 60_000;

/** The data of all instances. */
interface Reading {
  readonly steps: Steps;
  readonly instances: InstanceInfo[];
  readonly problem: string | undefined;
}

/** Sums up the counts of all instances. */
export class Overviews {
  readonly instances: Instances;

  constructor(
    private readonly recorder: Recorder,
    private readonly clock: ConsoleClock,
    private readonly redis: ConsoleRedis | undefined,
    private readonly health: RedisHealth | undefined,
  ) {
    this.instances = new Instances(recorder, clock, redis);
  }

  async overview(range: Range): Promise<Overview> {
    const { stepMs, steps } = RANGES[range];
    const now = this.clock.now();
    const last = stepOf(now, stepMs) - stepMs;
    const from = last - (steps - 1) * stepMs;
    const [reading, redis] = await Promise.all([
      this.read(stepMs, from, steps * stepMs, (id, { keys }) => ['hgetall', keys.counts(id, stepMs)]),
      this.health?.look() ?? null,
    ]);
    return {
      at: Math.round(now),
      range,
      stepMs,
      series: reading.steps.series(from, last, stepMs),
      totals: reading.steps.totals(from),
      instances: reading.instances,
      redis,
      ...(reading.problem !== undefined && { problem: reading.problem }),
    };
  }

  /** The newest complete seconds. */
  async tick(): Promise<Tick> {
    const now = this.clock.now();
    const last = stepOf(now, SECOND_MS) - SECOND_MS;
    const from = last - (TICK_STEPS - 1) * SECOND_MS;
    const seconds = Array.from({ length: TICK_STEPS }, (_, index) => from + index * SECOND_MS);
    const [reading, redis] = await Promise.all([
      this.read(
        SECOND_MS,
        from,
        SHOWN_MS,
        (id, { keys }) => ['hmget', keys.counts(id, SECOND_MS), ...seconds],
        seconds,
      ),
      this.health?.look() ?? null,
    ]);
    return {
      at: Math.round(now),
      stepMs: SECOND_MS,
      series: reading.steps.series(from, last, SECOND_MS),
      instances: reading.instances,
      redis,
      ...(reading.problem !== undefined && { problem: reading.problem }),
    };
  }

  /** The sums of the last hour by label. */
  async lastHour(): Promise<Record<string, LimitTotals>> {
    const { stepMs, steps } = RANGES['1h'];
    const from = stepOf(this.clock.now(), stepMs) - steps * stepMs;
    const reading = await this.read(stepMs, from, steps * stepMs, (id, { keys }) => [
      'hgetall',
      keys.counts(id, stepMs),
    ]);
    return reading.steps.totals(from);
  }

  /** Reads all instances, or only this one while Redis fails. `fields`: the fields for a command that returns only values. */
  private async read(
    stepMs: number,
    from: number,
    withinMs: number,
    command: (id: string, redis: ConsoleRedis) => Command,
    fields?: readonly number[],
  ): Promise<Reading> {
    const own = this.recorder.timeline.since(stepMs, from);
    let read = { steps: new Steps(), instances: [this.instances.self] };
    let problem: string | undefined;
    try {
      const values = fields?.length ?? withinMs / stepMs;
      for await (const { info, reply } of this.instances.others(withinMs + SHOWN_MS, values, command)) {
        if (info !== undefined) read.instances.push(info);
        for (const [index, text] of Object.entries((reply ?? {}) as Record<string, string | null>)) {
          const step = fields === undefined ? Number(index) : fields[Number(index)]!;
          const bucket = step >= from && text !== null ? readBucket(text) : undefined;
          if (bucket !== undefined) read.steps.add(step, bucket);
        }
      }
    } catch (error) {
      // Part of the instances would look like all of them.
      read = { steps: new Steps(), instances: [this.instances.self] };
      problem = consoleMessages.unreachable(reasonOf(error));
    }
    const unstored = this.redis === undefined ? undefined : this.recorder.problem;
    if (unstored !== undefined) problem ??= consoleMessages.unstored(unstored);
    const { steps, instances } = read;
    for (const [step, bucket] of own) steps.add(step, bucket);
    return { steps, instances: inOrder(instances), problem };
  }
}
