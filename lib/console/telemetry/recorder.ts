import type { LookAtAdaptive } from '../../storage/telemetry/metrics.js';
import { reasonOf } from '../../engine/errors/reasons.js';
import type { InstanceInfo } from '../api.js';
import { type ConsoleClock, type ConsoleRedis, FOLD_AFTER_MS, FOLD_EVERY } from './console-redis.js';
import { Folder } from './folder.js';
import { FullSince, Timeline } from './timeline.js';
import { type PublishedInstance, thisInstance } from './report.js';
import { learnTime, Reporter } from './reporter.js';
import type { WatchedLimits } from './watched-limits.js';

/** Collects the decisions of this instance once per second, and reports them. */
export class Recorder {
  readonly timeline = new Timeline();
  readonly self = thisInstance();
  private readonly startedAt = Date.now();
  private timer: NodeJS.Timeout | undefined;
  private lastStep = -Infinity;
  private flushing: Promise<void> | undefined;
  private isClosed = false;
  /** Stores the steps; `undefined` without Redis, and for an observer. */
  private readonly reporter: Reporter | undefined;
  /** The reason why an observer could not reach Redis. */
  private unobserved: string | undefined;
  private folding: Promise<void> | undefined;
  /** Instances take turns. */
  private readonly foldAt = Number.parseInt(this.self.id, 16) % FOLD_EVERY;
  private readonly folder: Folder | undefined;
  private readonly full = new FullSince();
  private circuitOpenSince: number | undefined;

  constructor(
    private readonly limits: WatchedLimits,
    private readonly clock: ConsoleClock,
    private readonly redis: ConsoleRedis | undefined,
    private readonly circuit: () => InstanceInfo['circuit'],
    private readonly look: LookAtAdaptive,
    timeoutMs: number,
    /** The text about the app's limits to publish; `undefined` for an observer outside the app, which isn't an instance. */
    private readonly limitsText: (() => string) | undefined,
  ) {
    if (redis === undefined || limitsText === undefined) return;
    this.folder = new Folder(redis, clock, timeoutMs);
    this.reporter = new Reporter(redis, clock, this.self.id, {
      timeline: this.timeline,
      limits,
      instance: () => this.published,
      limitsText,
    });
  }

  start(): void {
    this.arm();
  }

  /** True if this process only observes: it counts nothing, and doesn't report itself. */
  get observes(): boolean {
    return this.limitsText === undefined;
  }

  /** The error of the last call to Redis. */
  get problem(): string | undefined {
    return this.reporter === undefined ? this.unobserved : this.reporter.problem;
  }

  /** True if Redis came back so recently that other instances may not have reported yet. */
  get isJustBack(): boolean {
    return this.reporter?.isJustBack === true;
  }

  /** The data that this instance publishes about itself. */
  get published(): PublishedInstance {
    const { clock, startedAt } = this;
    const now = Math.round(clock.now());
    const adaptive = this.full.of(this.limits.tally.adaptive.now(this.look), now);
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

  /** Reports the end of this instance and stores its counts. Counting continues. Never rejects. */
  async leave(): Promise<void> {
    if (this.reporter !== undefined) this.reporter.isLeaving = true;
    await this.flush();
  }

  /** Collects and stores the last counts. Never rejects. */
  async close(): Promise<void> {
    this.isClosed = true;
    clearTimeout(this.timer);
    await this.folding;
    await this.leave();
  }

  /** Stores all pending data in one call. Never rejects. */
  async flush(): Promise<void> {
    await this.flushing;
    this.fold();
    for (let calls = 0; calls < 5 && this.redis !== undefined; calls++) {
      await this.store(this.redis, false);
      if (this.problem !== undefined || this.timeline.isStored) return;
    }
  }

  /** Collects the counts since the last time, for the second that has just ended. */
  fold(): void {
    this.limits.turn();
    const { tally } = this.limits;
    const bucket = tally.take();
    tally.adaptive.addTo(bucket, this.look);
    if (bucket.checks.checks === 0 && bucket.limits.size === 0) return;
    const now = this.clock.now();
    // If the timer is late, counts of the following second are added to the ended one.
    const at = this.isClosed ? now : Math.floor(now / 1000) * 1000 - 1;
    this.timeline.add(at, bucket);
  }

  private arm(): void {
    if (this.isClosed) return;
    const now = this.clock.now();
    // Timers may fire a moment early.
    const next = Math.max(Math.floor(now / 1000), this.lastStep) + 1;
    const wait = Math.min(next * 1000 + 2 - now, 1002);
    this.timer = setTimeout(this.tick, wait).unref();
  }

  private readonly tick = (): void => {
    this.lastStep = Math.floor(this.clock.now() / 1000);
    this.fold();
    // There is never a second call while one to a slow server is pending.
    if (this.redis !== undefined && this.flushing === undefined) {
      this.flushing = this.store(this.redis, true).finally(() => (this.flushing = undefined));
    }
    this.foldEnded();
    this.arm();
  };

  private store(redis: ConsoleRedis, isBrief: boolean): Promise<void> {
    return this.reporter === undefined ? this.observe(redis) : this.reporter.report(isBrief);
  }

  /** Updates the time of Redis, and detects if it is available. */
  private async observe(redis: ConsoleRedis): Promise<void> {
    try {
      await learnTime(redis, this.clock);
      this.unobserved = undefined;
    } catch (error) {
      this.unobserved = reasonOf(error);
    }
  }

  /** Adds ended instances to their sum; skipped if Redis has just come back, since instances may only be disconnected. */
  private foldEnded(): void {
    const { folder, reporter, lastStep } = this;
    if (folder === undefined || this.folding !== undefined || lastStep % FOLD_EVERY !== this.foldAt) return;
    if (reporter === undefined || reporter.healthyMs < FOLD_AFTER_MS) return;
    this.folding = folder.turn(this.self.id).then(
      () => (this.folding = undefined),
      () => (this.folding = undefined),
    );
  }
}
