import type { LookAtAdaptive } from '../../telemetry/adaptive-metrics.js';
import { reasonOf } from '../../util/reason-of.js';
import type { InstanceInfo } from '../api.js';
import type { ConsoleClock } from './console-clock.js';
import { type Command, type ConsoleRedis, timeOf } from './console-redis.js';
import { thisInstance, type PublishedInstance } from './instance.js';
import { type OldStep, RESOLUTIONS, type SentStep, Timeline } from './timeline.js';
import type { WatchedLimits } from './watched-limits.js';

/** The most steps to store in one call: after an outage there are more. */
const MOST_SENT = 200;
/** An instance that has not reported for this long has ended. */
const ALIVE_SECONDS = 60;
/** The instances whose counts are still read. */
const DAY_MS = 86_400_000;
const TOP_SECONDS = 15;
/** The most instances to keep track of, including those that ended within a day. */
export const MOST_INSTANCES = 1000;

/** Collects the decisions of this instance in steps, once a second, and stores them. */
export class Recorder {
  readonly timeline = new Timeline();
  readonly self = thisInstance();
  /** Why the last call to Redis failed. */
  problem: string | undefined;
  private readonly startedAt = Date.now();
  private timer: NodeJS.Timeout | undefined;
  private lastStep = -Infinity;
  private flushing: Promise<void> | undefined;
  private isClosed = false;

  constructor(
    private readonly limits: WatchedLimits,
    private readonly clock: ConsoleClock,
    private readonly redis: ConsoleRedis | undefined,
    private readonly circuit: () => InstanceInfo['circuit'],
    private readonly look: LookAtAdaptive,
  ) {}

  start(): void {
    this.arm();
  }

  /** Folds and stores the last counts. Never rejects. */
  async close(): Promise<void> {
    this.isClosed = true;
    clearTimeout(this.timer);
    await this.flush();
  }

  /** Stores what has not been stored yet, in one call. Never rejects. */
  async flush(): Promise<void> {
    await this.flushing;
    this.fold();
    for (let calls = 0; calls < 5 && this.redis !== undefined; calls++) {
      await this.store();
      if (this.problem !== undefined || this.timeline.isStored) return;
    }
  }

  /** What this instance publishes about itself. */
  get published(): PublishedInstance {
    const { clock, startedAt } = this;
    const adaptive = this.limits.tally.adaptiveNow(this.look);
    return {
      ...this.self,
      startedAt,
      clockOffsetMs: this.redis === undefined ? 0 : clock.offsetMs,
      lastSeenAt: Math.round(clock.now()),
      circuit: this.circuit(),
      ...(adaptive && { adaptive }),
    };
  }

  /** Takes the counts since the last time, as those of the second that has just ended. */
  fold(): void {
    this.limits.turn();
    const bucket = this.limits.tally.take();
    if (bucket.checks.checks === 0 && bucket.limits.size === 0) return;
    const now = this.clock.now();
    // What is counted while a timer is late belongs to the second before.
    const at = this.isClosed ? now : Math.floor(now / 1000) * 1000 - 1;
    this.timeline.add(at, bucket);
  }

  private arm(): void {
    if (this.isClosed) return;
    const now = this.clock.now();
    // Timers may be a moment early.
    const next = Math.max(Math.floor(now / 1000), this.lastStep) + 1;
    const wait = Math.min(next * 1000 + 2 - now, 1002);
    this.timer = setTimeout(this.tick, wait).unref();
  }

  private readonly tick = (): void => {
    this.lastStep = Math.floor(this.clock.now() / 1000);
    this.fold();
    // Sends no second call while one to a slow server is pending.
    if (this.redis !== undefined && this.flushing === undefined) {
      this.flushing = this.store().finally(() => (this.flushing = undefined));
    }
    this.arm();
  };

  private async store(): Promise<void> {
    const redis = this.redis!;
    const sent = this.timeline.unsent(MOST_SENT);
    const commands = this.commands(redis, sent);
    const sentAt = performance.now();
    try {
      const [time, watched] = await redis.run(commands);
      this.clock.learn(timeOf(time), sentAt, performance.now());
      this.timeline.stored(sent);
      this.watch(watched as string[]);
      // A server that was away may have lost its data.
      if (this.problem !== undefined) this.timeline.forgetStored();
      this.problem = undefined;
    } catch (error) {
      this.problem = reasonOf(error);
    }
  }

  private commands(redis: ConsoleRedis, { steps, old }: { steps: SentStep[]; old: OldStep[] }): Command[] {
    const { keys } = redis;
    const { published } = this;
    const { id, lastSeenAt } = published;
    const commands: Command[] = [
      ['time'],
      ['zrange', keys.watched, 0, -1, 'WITHSCORES'],
      ['zadd', keys.seen, lastSeenAt, id],
      ['expire', keys.seen, (2 * DAY_MS) / 1000],
      ['set', keys.instance(id), JSON.stringify(published), 'EX', ALIVE_SECONDS],
    ];
    // With a wrong clock it would remove all other instances.
    if (this.clock.isLearnt) commands.push(['zremrangebyscore', keys.seen, '-inf', lastSeenAt - DAY_MS]);
    for (const { stepMs, steps: kept } of RESOLUTIONS) {
      const key = keys.counts(id, stepMs);
      const fields = steps.filter((each) => each.stepMs === stepMs).flatMap(({ step, text }) => [step, text]);
      const gone = old.filter((each) => each.stepMs === stepMs).map(({ step }) => step);
      if (fields.length > 0) commands.push(['hset', key, ...fields], ['expire', key, (stepMs / 1000) * (kept + 4)]);
      if (gone.length > 0) commands.push(['hdel', key, ...gone]);
    }
    if (this.limits.isCounting) {
      commands.push(['set', keys.top(id), JSON.stringify(this.limits.published()), 'EX', TOP_SECONDS]);
    }
    return commands;
  }

  private watch(watched: readonly string[]): void {
    for (let at = 0; at + 1 < watched.length; at += 2) this.limits.watch(watched[at]!, Number(watched[at + 1]));
  }
}
