import { reasonOf } from '../../engine/errors/reasons.js';
import { pairsOf } from '../../storage/redis/errors.js';
import { Script } from '../../storage/redis/script.js';
import type { LookAtAdaptive } from '../../storage/telemetry/metrics.js';
import type { InstanceInfo } from '../api.js';
import { addBucket, emptyBucket, isEmpty, readBucket, writeBucket } from './bucket.js';
import {
  type ConsoleClock,
  type ConsoleRedis,
  ENDED,
  FOLD_AFTER_MS,
  FOLD_EVERY,
  LOST_SHOWN_MS,
} from './console-redis.js';
import { FOLD_SCRIPT } from './fold-script.generated.js';
import { learnTime, type PublishedInstance, Reporter, thisInstance } from './reporter.js';
import { type Resolution, RESOLUTIONS, Timeline } from './timeline.js';
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

  get published(): PublishedInstance {
    const { clock, startedAt } = this;
    const now = Math.round(clock.now());
    const adaptive = this.limits.tally.adaptive.nowAndSince(this.look, now);
    const circuit = this.circuit();
    this.circuitOpenSince = circuit === 'open' ? (this.circuitOpenSince ?? now) : undefined;
    return {
      ...this.self,
      startedAt,
      clockOffsetMs: this.redis === undefined ? 0 : clock.offsetMs,
      lastSeenAt: now,
      circuit,
      circuitOpenSince: this.circuitOpenSince,
      adaptive,
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
    if (isEmpty(bucket)) return;
    const now = this.clock.now();
    // If the timer is late, counts of the following second are added to the ended one.
    const at = this.isClosed ? now : Math.floor(now / 1000) * 1000 - 1;
    this.timeline.add(at, bucket);
  }

  /** Collects the counts at the end of this second, and of each following one. */
  start(): void {
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
    this.start();
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
    const turn = folder.turn(this.self.id).catch(() => undefined);
    this.folding = turn.then(() => (this.folding = undefined));
  }
}

/** The number of steps to add per call. Requests of the app run between calls. */
const STEPS_PER_CALL = 40;
/** The number of instances to add per turn. */
const PER_TURN = 5;
/** With more lost instances than this, those that were lost first are added early. */
const MOST_LOST = 50;

/** An ended instance in an index. */
interface Ended {
  readonly id: string;
  /** When it last reported, as stored on Redis. */
  readonly score: string;
  readonly index: 'endings' | 'reports';
}

/**
 * Adds the counts of ended instances to one sum, so that the number of hashes to read doesn't grow with each deployment. A script moves
 * each step to the sum only if the instance has not reported in the meantime and no other instance has changed the sum. So each count is in
 * exactly one of them.
 */
export class Folder {
  private readonly script: Script;

  constructor(
    private readonly redis: ConsoleRedis,
    private readonly clock: ConsoleClock,
    private readonly timeoutMs: number,
  ) {
    this.script = new Script(redis.client, FOLD_SCRIPT);
  }

  /** Adds some ended instances. Returns how many. Rejects with `RateLimitStoreError`. */
  async turn(self: string): Promise<number> {
    let folded = 0;
    for (const each of await this.ended()) if (each.id !== self && (await this.fold(each))) folded++;
    return folded;
  }

  private async ended(): Promise<Ended[]> {
    const { keys } = this.redis;
    const now = Math.round(this.clock.now());
    const [endings, reports] = await this.redis.run([
      ['zrangebyscore', keys.endings, '-inf', now - FOLD_AFTER_MS, 'WITHSCORES', 'LIMIT', 0, PER_TURN],
      ['zrangebyscore', keys.reports, '-inf', now - 2 * FOLD_AFTER_MS, 'WITHSCORES', 'LIMIT', 0, MOST_LOST + PER_TURN],
    ]);
    const lost = pairsOf(reports);
    const old = lost.filter(([, score], at) => Number(score) < now - LOST_SHOWN_MS || at < lost.length - MOST_LOST);
    return [
      ...pairsOf(endings).map(([id, score]): Ended => ({ id, score, index: 'endings' })),
      ...old.map(([id, score]): Ended => ({ id, score, index: 'reports' })),
    ].slice(0, PER_TURN);
  }

  /** Returns true if all of it was added, by this instance or another one at the same time. */
  private async fold(ended: Ended): Promise<boolean> {
    const { keys } = this.redis;
    for (const resolution of RESOLUTIONS) if (!(await this.foldSteps(ended, resolution))) return false;
    const [version] = await this.redis.run([['get', keys.folds]]);
    const hashes = RESOLUTIONS.map(({ stepMs }) => keys.counts(ended.id, stepMs));
    return this.commit(ended, Number(version ?? 0), keys.counts(ENDED, 1000), hashes, ['end']);
  }

  private async foldSteps(ended: Ended, { stepMs, steps }: Resolution): Promise<boolean> {
    const { keys } = this.redis;
    const source = keys.counts(ended.id, stepMs);
    const sum = keys.counts(ENDED, stepMs);
    const from = this.clock.now() - (steps + 1) * stepMs;
    // Read in this order, so that additions by another instance from now on change the version.
    const [read, held] = await this.redis.read([
      ['get', keys.folds],
      ['hgetall', source],
    ]);
    let version = Number(read ?? 0);
    const found = Object.entries((held ?? {}) as Record<string, string>).filter(([step]) => Number(step) >= from);
    let old = stepsBefore(from, steps + 6, stepMs);
    for (let at = 0; at < found.length; at += STEPS_PER_CALL) {
      const some = found.slice(at, at + STEPS_PER_CALL);
      const [reply] = await this.redis.run([['hmget', sum, ...some.map(([step]) => step)]]);
      const before = reply as (string | null)[];
      const merged = some.flatMap(([step, text], index) => [step, sumOf(text, before[index]!)]);
      const args = [String(Math.ceil((stepMs / 1000) * (steps + 4))), String(old.length), ...old, ...merged];
      if (!(await this.commit(ended, version, sum, [source], args))) return false;
      version++;
      old = [];
    }
    return true;
  }

  private async commit(
    { id, score, index }: Ended,
    version: number,
    sum: string,
    hashes: readonly string[],
    args: readonly string[],
  ): Promise<boolean> {
    const { keys } = this.redis;
    const all = [keys[index], keys.seen, keys.folds, keys.folded(id), sum, ...hashes];
    return (await this.script.run(all, [id, score, String(version), ENDED, ...args], this.timeoutMs)) === 1;
  }
}

/** Counts that can't be read, for example from another release, add nothing. */
function sumOf(text: string, before: string | null): string {
  const sum = emptyBucket();
  for (const each of [before, text]) {
    const bucket = each === null ? undefined : readBucket(each);
    if (bucket !== undefined) addBucket(sum, bucket);
  }
  return writeBucket(sum);
}

/** The last steps before a time. */
function stepsBefore(time: number, steps: number, stepMs: number): string[] {
  const last = Math.ceil(time / stepMs) * stepMs - stepMs;
  return Array.from({ length: steps }, (_, index) => String(last - index * stepMs));
}
