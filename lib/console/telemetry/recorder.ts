import type { LookAtAdaptive } from '../../telemetry/adaptive-metrics.js';
import { reasonOf } from '../../util/reason-of.js';
import type { AdaptiveNow, InstanceInfo } from '../api.js';
import { type Bucket, noLimitCounts } from './bucket.js';
import type { ConsoleClock } from './console-clock.js';
import { type Command, type ConsoleRedis, timeOf } from './console-redis.js';
import { Folder } from './folder.js';
import { FullSince } from './full-since.js';
import { leaveOutFolded } from './leave-out-folded.js';
import { thisInstance, type PublishedInstance } from './instance.js';
import {
  ABOUT_EVERY,
  ABOUT_SECONDS,
  ABSENT_MS,
  DAY_MS,
  FOLD_AFTER_MS,
  FOLD_EVERY,
  LIMITS_EVERY,
  LOST_AFTER_MS,
} from './lifetimes.js';
import { publishing } from './published-limits.js';
import { reportOf, type Sent, storingDemand, storingOf } from './report.js';
import { Timeline } from './timeline.js';
import type { WatchedLimits } from './watched-limits.js';

/** The most steps to store in one call: after an outage there are more. */
const MOST_SENT = 200;
/** For how long instances of the release before show an instance after its last report. */
const ALIVE_SECONDS = 60;
const TOP_SECONDS = 15;
/** How often keys are published that nobody views, in seconds; and current steps of hours. */
const TOP_EVERY = 3;
const HOURS_EVERY = 15;
/** The most intervals whose demand is stored in one call. */
const MOST_DEMANDS = 50;
/** The most calls without an answer to remember. */
const MOST_UNSURE = 20;

/** Notes what adaptive limits admit and have in flight, if they are in use. */
function noteAdaptive({ limits }: Bucket, adaptive: Readonly<Record<string, AdaptiveNow>> = {}): void {
  for (const [label, { limit, inFlight }] of Object.entries(adaptive)) {
    const counts = limits.get(label) ?? noLimitCounts();
    if (inFlight === 0 && !limits.has(label)) continue;
    limits.set(label, { ...counts, looks: 1, admits: limit, inFlight });
  }
}

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
  private isLeaving = false;
  /** The calls without an answer, by the time that they reported: Redis may have run each of them. */
  private readonly unsure = new Map<number, Sent>();
  /** The number of calls that were sent. */
  private calls = 0;
  /** When calls began to succeed, and the last one did, by the monotonic clock. */
  private healthySince: number | undefined;
  private storedAt = -Infinity;
  /** When calls began to succeed again. */
  private backSince: number | undefined;
  private folding: Promise<void> | undefined;
  /** Instances take turns. */
  private readonly foldAt = Number.parseInt(this.self.id, 16) % FOLD_EVERY;
  private readonly folder: Folder | undefined;
  private readonly full = new FullSince();
  private circuitOpenSince: number | undefined;
  /** The app's limits, as they are published. */
  private shown: string | undefined;

  constructor(
    private readonly limits: WatchedLimits,
    private readonly clock: ConsoleClock,
    private readonly redis: ConsoleRedis | undefined,
    private readonly circuit: () => InstanceInfo['circuit'],
    private readonly look: LookAtAdaptive,
    timeoutMs: number,
    /** What is published of the app's limits; `undefined` for an observer beside the app, which is no instance of it. */
    private readonly limitsText: (() => string) | undefined,
  ) {
    this.folder = redis && new Folder(redis, clock, timeoutMs);
  }

  start(): void {
    this.arm();
  }

  /** Whether this process only looks: it counts nothing, and reports nothing of itself. */
  get observes(): boolean {
    return this.limitsText === undefined;
  }

  /** Says that this instance ends, and stores what it counted. It goes on to count. Never rejects. */
  async leave(): Promise<void> {
    this.isLeaving = true;
    await this.flush();
  }

  /** Whether Redis came back so lately that other instances may not have reported yet. */
  get isJustBack(): boolean {
    return this.backSince !== undefined && performance.now() - this.backSince < LOST_AFTER_MS;
  }

  /** Folds and stores the last counts. Never rejects. */
  async close(): Promise<void> {
    this.isClosed = true;
    clearTimeout(this.timer);
    await this.folding;
    await this.leave();
  }

  /** Stores what has not been stored yet, in one call. Never rejects. */
  async flush(): Promise<void> {
    await this.flushing;
    this.fold();
    for (let calls = 0; calls < 5 && this.redis !== undefined; calls++) {
      await this.store(false);
      if (this.problem !== undefined || this.timeline.isStored) return;
    }
  }

  /** What this instance publishes about itself. */
  get published(): PublishedInstance {
    const { clock, startedAt } = this;
    const now = Math.round(clock.now());
    const adaptive = this.full.of(this.limits.tally.adaptiveNow(this.look), now);
    const circuit = this.circuit();
    this.circuitOpenSince = circuit === 'open' ? (this.circuitOpenSince ?? now) : undefined;
    return {
      ...this.self,
      startedAt,
      clockOffsetMs: this.redis === undefined ? 0 : clock.offsetMs,
      lastSeenAt: now,
      circuit,
      ...(this.circuitOpenSince !== undefined && { circuitOpenSince: this.circuitOpenSince }),
      ...(adaptive && { adaptive }),
    };
  }

  /** Takes the counts since the last time, as those of the second that has just ended. */
  fold(): void {
    this.limits.turn();
    const bucket = this.limits.tally.take();
    noteAdaptive(bucket, this.limits.tally.adaptiveNow(this.look));
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
      this.flushing = this.store(true).finally(() => (this.flushing = undefined));
    }
    this.foldEnded();
    this.arm();
  };

  /** Adds ended instances to their sum, unless those whose Redis just comes back may be only absent. */
  private foldEnded(): void {
    const { folder, healthySince, lastStep } = this;
    if (folder === undefined || this.observes || this.folding !== undefined || lastStep % FOLD_EVERY !== this.foldAt)
      return;
    if (healthySince === undefined || performance.now() - healthySince < FOLD_AFTER_MS) return;
    this.folding = folder.turn(this.self.id).then(
      () => (this.folding = undefined),
      () => (this.folding = undefined),
    );
  }

  private async store(isBrief: boolean): Promise<void> {
    const redis = this.redis!;
    if (this.observes) return this.observe(redis);
    const notes = this.limits.noted.take();
    try {
      const isAbsent = performance.now() - this.storedAt > ABSENT_MS;
      // By a wrong clock it would look lost, or forget all other instances.
      if (!this.clock.isLearnt) await this.learnTime(redis);
      if (isAbsent && this.calls > 0) await this.comeBack(redis);
      this.calls++;
      const sent = this.timeline.unsent(MOST_SENT, isBrief && this.calls % HOURS_EVERY !== 0);
      const { published } = this;
      const commands = [
        ...this.commands(redis, sent, published, isBrief),
        ...this.limits.noted.storing(redis, notes, this.calls === 1 || this.problem !== undefined),
      ];
      this.unsure.set(published.lastSeenAt, sent);
      if (this.unsure.size > MOST_UNSURE) this.unsure.delete(this.unsure.keys().next().value!);
      const sentAt = performance.now();
      const [time, watched] = await redis.run(commands);
      const now = performance.now();
      this.clock.learn(timeOf(time), sentAt, now);
      this.timeline.stored(sent);
      this.unsure.clear();
      this.watch(watched as string[]);
      // A server that was away may have lost its data.
      if (this.problem !== undefined) this.timeline.forgetStored();
      if (this.problem !== undefined) this.backSince = now;
      this.problem = undefined;
      this.storedAt = now;
      this.healthySince ??= now;
    } catch (error) {
      this.limits.noted.putBack(notes);
      this.problem = reasonOf(error);
      this.healthySince = undefined;
    }
  }

  /** Keeps the time of Redis, and whether it answers. */
  private async observe(redis: ConsoleRedis): Promise<void> {
    try {
      await this.learnTime(redis);
      this.problem = undefined;
    } catch (error) {
      this.problem = reasonOf(error);
    }
  }

  private async learnTime(redis: ConsoleRedis): Promise<void> {
    const sentAt = performance.now();
    const [time] = await redis.run([['time']]);
    this.clock.learn(timeOf(time), sentAt, performance.now());
  }

  /** Leaves out what others have added to the sum of ended instances, since they took this one for one of them. */
  private async comeBack(redis: ConsoleRedis): Promise<void> {
    const { keys } = redis;
    const { id } = this.self;
    // From this report on nobody adds any more of it.
    const replies = await redis.run([
      ...reportOf(redis, id, Math.round(this.clock.now()), this.isLeaving),
      ['get', keys.folded(id)],
    ]);
    const folded = replies.at(-1);
    if (folded === null) return;
    const unsure = this.unsure.get(Number(folded));
    if (unsure !== undefined) this.timeline.stored(unsure);
    await leaveOutFolded(redis, id, this.timeline);
  }

  private commands(redis: ConsoleRedis, sent: Sent, published: PublishedInstance, isBrief: boolean): Command[] {
    const { keys } = redis;
    const { id, lastSeenAt } = published;
    const commands: Command[] = [
      ['time'],
      ['zrange', keys.watched, 0, -1, 'WITHSCORES'],
      ...reportOf(redis, id, lastSeenAt, this.isLeaving),
    ];
    if (!this.isLeaving) {
      const text = JSON.stringify(published);
      commands.push(['set', keys.instance(id), text, 'EX', ALIVE_SECONDS]);
      if (this.calls % ABOUT_EVERY === 1 || this.problem !== undefined) {
        commands.push(['set', keys.about(id), text, 'EX', ABOUT_SECONDS]);
      }
    }
    if (!this.isLeaving && (this.calls % LIMITS_EVERY === 1 || this.problem !== undefined)) {
      this.shown ??= this.limitsText!();
      commands.push(...publishing(redis, this.shown, lastSeenAt, this.calls > 1 && this.problem === undefined));
    }
    commands.push(['zremrangebyscore', keys.seen, '-inf', lastSeenAt - DAY_MS]);
    commands.push(...storingOf(redis, id, sent), ...storingDemand(redis, id, this.limits.demand.take(MOST_DEMANDS)));
    if (this.limits.isWatched || !isBrief || this.calls % TOP_EVERY === 0) {
      const keysOfLimits = this.limits.published();
      if (keysOfLimits.length > 0)
        commands.push(['set', keys.top(id), JSON.stringify(keysOfLimits), 'EX', TOP_SECONDS]);
    }
    return commands;
  }

  private watch(watched: readonly string[]): void {
    for (let at = 0; at + 1 < watched.length; at += 2) this.limits.watch(watched[at]!, Number(watched[at + 1]));
  }
}
