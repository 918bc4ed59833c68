import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { reasonOf } from '../../engine/errors/reasons.js';
import { pairsOf } from '../../storage/redis/errors.js';
import { VERSION } from '../../storage/telemetry/version.js';
import type { AdaptiveNow, InstanceInfo } from '../api.js';
import {
  ABOUT_EVERY,
  ABOUT_SECONDS,
  ABSENT_MS,
  type Command,
  type ConsoleClock,
  type ConsoleRedis,
  DAY_MS,
  INDEX_SECONDS,
  LIMITS_EVERY,
  LOST_AFTER_MS,
  timeOf,
} from './console-redis.js';
import { DEMAND_MS, type UnsentWindow } from './demand-sampler.js';
import { publishing } from './published-limits.js';
import { RESOLUTIONS, type Sent, type Timeline } from './timeline.js';
import type { WatchedLimits } from './watched-limits.js';

/** Maximum number of steps to store per call. There are more after an outage. */
const MOST_SENT = 200;
/** How long instances of the previous release display an instance after its last report. */
const ALIVE_SECONDS = 60;
const TOP_SECONDS = 15;
/** How often keys without viewers are published, in seconds; the same for current steps of hours. */
const TOP_EVERY = 3;
const HOURS_EVERY = 15;
/** Maximum number of intervals whose demand is stored per call. */
const MOST_DEMANDS = 50;
/** Maximum number of unanswered calls to remember. */
const MOST_UNSURE = 20;

/** The data to report. */
interface Reported {
  /** The counts. */
  readonly timeline: Timeline;
  readonly limits: WatchedLimits;
  /** Returns the data that this instance publishes about itself. */
  readonly instance: () => PublishedInstance;
  /** Returns the text about the app's limits to publish. */
  readonly limitsText: () => string;
}

/** Reports this instance and its counts to Redis, in one call each time, and reads the requests of viewers. */
export class Reporter {
  isLeaving = false;
  /** The error of the last call to Redis. */
  problem: string | undefined;
  /** Unanswered calls, by the time that they reported. Redis may have run each of them. */
  private readonly unsure = new Map<number, Sent>();
  private calls = 0;
  /** When calls began to succeed, and when the last one did, on the monotonic clock. */
  private healthySince: number | undefined;
  private storedAt = -Infinity;
  /** When calls began to succeed again. */
  private backSince: number | undefined;
  private shown: string | undefined;

  constructor(
    private readonly redis: ConsoleRedis,
    private readonly clock: ConsoleClock,
    /** The id of this instance. */
    private readonly id: string,
    private readonly reported: Reported,
  ) {}

  /** True if Redis came back so recently that other instances may not have reported yet. */
  get isJustBack(): boolean {
    return this.backSince !== undefined && performance.now() - this.backSince < LOST_AFTER_MS;
  }

  /** How long all calls have succeeded, in milliseconds. */
  get healthyMs(): number {
    return this.healthySince === undefined ? 0 : performance.now() - this.healthySince;
  }

  /** Stores new data. A brief report leaves out data that changes slowly. Never rejects. */
  async report(isBrief: boolean): Promise<void> {
    const { redis, clock } = this;
    const { timeline, limits, instance } = this.reported;
    const notes = limits.noted.take();
    try {
      const isAbsent = performance.now() - this.storedAt > ABSENT_MS;
      // With a wrong clock, this instance would seem lost, or would remove all others.
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
      for (const [label, until] of pairsOf(watched)) limits.watch(label, Number(until));
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
      // A server that was unavailable may have lost its data.
      timeline.forgetStored();
      this.backSince = now;
    }
    this.problem = undefined;
    this.storedAt = now;
    this.healthySince ??= now;
  }

  /** Removes counts that others have added to the sum of ended instances because they took this one for ended. */
  private async comeBack(): Promise<void> {
    const { redis, id } = this;
    const { timeline } = this.reported;
    // From this report on, nobody adds any more of its counts.
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
    const { limits } = this.reported;
    const { keys } = redis;
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

  /** Publishes this instance; and at intervals the data that is kept longer: its description, and the app's limits. */
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
}

export async function learnTime(redis: ConsoleRedis, clock: ConsoleClock): Promise<void> {
  const sentAt = performance.now();
  const [time] = await redis.run([['time']]);
  clock.learn(timeOf(time), sentAt, performance.now());
}

/** The data that an instance publishes about itself. */
export type PublishedInstance = Omit<InstanceInfo, 'self'>;

/** The constant data of this instance. Its id is unique, even if processes in several containers have equal process ids. */
export function thisInstance() {
  return { id: randomBytes(6).toString('hex'), version: VERSION, host: hostname().slice(0, 64), pid: process.pid };
}

/** Reads the data that an instance has published; `undefined` if it is malformed. */
export function readInstance(text: unknown): PublishedInstance | undefined {
  try {
    const published = JSON.parse(String(text)) as Record<string, unknown>;
    const { id, version, host, pid, startedAt, clockOffsetMs, lastSeenAt, circuit } = published;
    const isText = [id, version, host].every((each) => typeof each === 'string');
    const isNumber = [pid, startedAt, clockOffsetMs, lastSeenAt].every((each) => Number.isFinite(each));
    const isCircuit = circuit === 'closed' || circuit === 'open' || circuit === 'none';
    if (!isText || !isNumber || !isCircuit) return undefined;
    return {
      ...({ id, version, host, pid, startedAt, clockOffsetMs, lastSeenAt, circuit } as PublishedInstance),
      circuitOpenSince: circuit === 'open' ? timeOr(published['circuitOpenSince']) : undefined,
      adaptive: readAdaptive(published['adaptive']),
    };
  } catch {
    return undefined;
  }
}

function readAdaptive(published: unknown): Record<string, AdaptiveNow> | undefined {
  if (typeof published !== 'object' || published === null) return undefined;
  const known = Object.entries(published as Record<string, Partial<AdaptiveNow> | null>).flatMap(([label, now]) => {
    const { limit = NaN, inFlight = NaN } = now ?? {};
    if (![limit, inFlight].every((each) => Number.isSafeInteger(each) && each >= 0)) return [];
    return [[label, { limit, inFlight, fullSince: timeOr(now?.fullSince) }]];
  });
  return Object.fromEntries(known) as Record<string, AdaptiveNow>;
}

function timeOr(value: unknown): number | undefined {
  return Number.isFinite(value) ? (value as number) : undefined;
}

/** Subtracts steps that others have moved to the sum of ended instances from an instance's own counts: stored steps that are gone. */
async function leaveOutFolded(redis: ConsoleRedis, id: string, timeline: Timeline): Promise<void> {
  const { keys } = redis;
  for (const { stepMs } of RESOLUTIONS) {
    const steps = timeline.storedSteps(stepMs);
    if (steps.length === 0) continue;
    const [reply] = await redis.run([['hmget', keys.counts(id, stepMs), ...steps]]);
    const held = reply as (string | null)[];
    const gone = steps.filter((_, index) => held[index] === null);
    timeline.takeFolded(stepMs, gone);
  }
  await redis.run([['del', keys.folded(id)]]);
}

/** An interval of an hour that began an hour ago is still read. */
const DEMAND_SECONDS = (2 * DEMAND_MS) / 1000;

/** Reports that an instance is running, or that it ends. */
function reportOf({ keys }: ConsoleRedis, id: string, now: number, isLeaving: boolean): Command[] {
  const [to, from] = isLeaving ? [keys.endings, keys.reports] : [keys.reports, keys.endings];
  const commands: Command[] = [
    ['zadd', to, now, id],
    ['expire', to, INDEX_SECONDS],
    ['zadd', keys.seen, now, id],
    ['expire', keys.seen, (2 * DAY_MS) / 1000],
  ];
  if (isLeaving) commands.push(['zrem', from, id], ['del', keys.instance(id), keys.about(id)]);
  return commands;
}

/** Stores steps of an instance, and deletes those that are no longer kept. */
function storingOf({ keys }: ConsoleRedis, id: string, { steps, old }: Sent): Command[] {
  const commands: Command[] = [];
  for (const { stepMs, steps: kept } of RESOLUTIONS) {
    const key = keys.counts(id, stepMs);
    const fields = steps.filter((each) => each.stepMs === stepMs).flatMap(({ step, text }) => [step, text]);
    const gone = old.filter((each) => each.stepMs === stepMs).map(({ step }) => step);
    if (fields.length > 0) commands.push(['hset', key, ...fields], ['expire', key, (stepMs / 1000) * (kept + 4)]);
    if (gone.length > 0) commands.push(['hdel', key, ...gone]);
  }
  return commands;
}

function storingDemand({ keys }: ConsoleRedis, id: string, windows: readonly UnsentWindow[]): Command[] {
  return windows.flatMap(({ label, intervalMs, window, text, gone }): Command[] => {
    const key = keys.demand(id, label, intervalMs);
    const stored: Command[] = [
      ['hset', key, window, text],
      ['expire', key, DEMAND_SECONDS],
    ];
    return gone.length === 0 ? stored : [...stored, ['hdel', key, ...gone]];
  });
}
