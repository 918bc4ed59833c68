import { reasonOf } from '../../engine/util/reason-of.js';
import {
  ABOUT_EVERY,
  ABOUT_SECONDS,
  ABSENT_MS,
  type Command,
  type ConsoleClock,
  type ConsoleRedis,
  DAY_MS,
  LIMITS_EVERY,
  LOST_AFTER_MS,
  timeOf,
} from './console-redis.js';
import { leaveOutFolded, type PublishedInstance, reportOf, type Sent, storingDemand, storingOf } from './report.js';
import { publishing } from './published-limits.js';
import type { Timeline } from './timeline.js';
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

/** What is reported. */
export interface Reported {
  /** What was counted. */
  readonly timeline: Timeline;
  readonly limits: WatchedLimits;
  /** What this instance publishes about itself. */
  readonly instance: () => PublishedInstance;
  /** What is published of the app's limits. */
  readonly limitsText: () => string;
}

/** Reports this instance and what it counted to Redis, in one call each time, and learns what others want to know of it. */
export class Reporter {
  /** Whether this instance ends. */
  isLeaving = false;
  /** Why the last call to Redis failed. */
  problem: string | undefined;
  /** The calls without an answer, by the time that they reported: Redis may have run each of them. */
  private readonly unsure = new Map<number, Sent>();
  /** The number of calls that were sent. */
  private calls = 0;
  /** When calls began to succeed, and the last one did, by the monotonic clock. */
  private healthySince: number | undefined;
  private storedAt = -Infinity;
  /** When calls began to succeed again. */
  private backSince: number | undefined;
  /** The app's limits, as they are published. */
  private shown: string | undefined;

  constructor(
    private readonly redis: ConsoleRedis,
    private readonly clock: ConsoleClock,
    /** The id of this instance. */
    private readonly id: string,
    private readonly reported: Reported,
  ) {}

  /** Whether Redis came back so lately that other instances may not have reported yet. */
  get isJustBack(): boolean {
    return this.backSince !== undefined && performance.now() - this.backSince < LOST_AFTER_MS;
  }

  /** For how long all calls have succeeded, in milliseconds. */
  get healthyMs(): number {
    return this.healthySince === undefined ? 0 : performance.now() - this.healthySince;
  }

  /** Stores what is new. A brief call leaves out what changes slowly. Never rejects. */
  async report(isBrief: boolean): Promise<void> {
    const { redis, clock } = this;
    const { timeline, limits, instance } = this.reported;
    const notes = limits.noted.take();
    try {
      const isAbsent = performance.now() - this.storedAt > ABSENT_MS;
      // By a wrong clock it would look lost, or forget all other instances.
      if (!clock.isLearnt) await learnTime(redis, clock);
      if (isAbsent && this.calls > 0) await this.comeBack();
      this.calls++;
      const sent = timeline.unsent(MOST_SENT, isBrief && this.calls % HOURS_EVERY !== 0);
      const published = instance();
      const commands = [
        ...this.commands(sent, published, isBrief),
        ...limits.noted.storing(redis, notes, this.calls === 1 || this.problem !== undefined),
      ];
      this.unsure.set(published.lastSeenAt, sent);
      if (this.unsure.size > MOST_UNSURE) this.unsure.delete(this.unsure.keys().next().value!);
      const sentAt = performance.now();
      const [time, watched] = await redis.run(commands);
      const now = performance.now();
      clock.learn(timeOf(time), sentAt, now);
      this.succeeded(sent, now);
      this.watch(watched as string[]);
    } catch (error) {
      limits.noted.putBack(notes);
      this.problem = reasonOf(error);
      this.healthySince = undefined;
    }
  }

  private succeeded(sent: Sent, now: number): void {
    const { timeline } = this.reported;
    timeline.stored(sent);
    this.unsure.clear();
    if (this.problem !== undefined) {
      // A server that was away may have lost its data.
      timeline.forgetStored();
      this.backSince = now;
    }
    this.problem = undefined;
    this.storedAt = now;
    this.healthySince ??= now;
  }

  /** Leaves out what others have added to the sum of ended instances, since they took this one for one of them. */
  private async comeBack(): Promise<void> {
    const { redis, id } = this;
    const { timeline } = this.reported;
    // From this report on nobody adds any more of it.
    const replies = await redis.run([
      ...reportOf(redis, id, Math.round(this.clock.now()), this.isLeaving),
      ['get', redis.keys.folded(id)],
    ]);
    const folded = replies.at(-1);
    if (folded === null) return;
    const unsure = this.unsure.get(Number(folded));
    if (unsure !== undefined) timeline.stored(unsure);
    await leaveOutFolded(redis, id, timeline);
  }

  private commands(sent: Sent, published: PublishedInstance, isBrief: boolean): Command[] {
    const { redis, id } = this;
    const { keys } = redis;
    const { limits } = this.reported;
    const { lastSeenAt } = published;
    return [
      ['time'],
      ['zrange', keys.watched, 0, -1, 'WITHSCORES'],
      ...reportOf(redis, id, lastSeenAt, this.isLeaving),
      ...(this.isLeaving ? [] : this.publishingOf(published)),
      ['zremrangebyscore', keys.seen, '-inf', lastSeenAt - DAY_MS],
      ...storingOf(redis, id, sent),
      ...storingDemand(redis, id, limits.demand.take(MOST_DEMANDS)),
      ...(limits.isWatched || !isBrief || this.calls % TOP_EVERY === 0 ? this.storingKeys() : []),
    ];
  }

  /** Publishes this instance, and now and then what is kept longer: the instance again, and the app's limits. */
  private publishingOf(published: PublishedInstance): Command[] {
    const { redis, id, calls, problem } = this;
    const { keys } = redis;
    const text = JSON.stringify(published);
    const commands: Command[] = [['set', keys.instance(id), text, 'EX', ALIVE_SECONDS]];
    const isDue = (every: number) => calls % every === 1 || problem !== undefined;
    if (isDue(ABOUT_EVERY)) commands.push(['set', keys.about(id), text, 'EX', ABOUT_SECONDS]);
    if (isDue(LIMITS_EVERY)) {
      this.shown ??= this.reported.limitsText();
      commands.push(...publishing(redis, this.shown, published.lastSeenAt, calls > 1 && problem === undefined));
    }
    return commands;
  }

  private storingKeys(): Command[] {
    const keysOfLimits = this.reported.limits.published();
    if (keysOfLimits.length === 0) return [];
    return [['set', this.redis.keys.top(this.id), JSON.stringify(keysOfLimits), 'EX', TOP_SECONDS]];
  }

  private watch(watched: readonly string[]): void {
    for (let at = 0; at + 1 < watched.length; at += 2)
      this.reported.limits.watch(watched[at]!, Number(watched[at + 1]));
  }
}

/** Learns the time of Redis. */
export async function learnTime(redis: ConsoleRedis, clock: ConsoleClock): Promise<void> {
  const sentAt = performance.now();
  const [time] = await redis.run([['time']]);
  clock.learn(timeOf(time), sentAt, performance.now());
}
