import type { WindowCount } from '../../../engine/algorithms/algorithm.js';
import { RateLimitStoreError } from '../../../engine/errors/errors.js';
import type { CompiledLimit } from '../../../engine/limits/compiled-limit.js';
import { type CheckEntry, type Counter, startsOf } from '../../../engine/limits/counter.js';
import type { NodeRedisConnection } from '../../redis/node-redis/types.js';
import { connect, connectionOf, duplicate, isCluster, type RedisClient } from '../../redis/client.js';
import type { Connection } from '../../redis/connection.js';
import { outOfTime, storeTimeout, withDeadline } from '../../redis/deadline.js';
import { endSentinels } from '../../redis/sentinels.js';
import { allOrNothing, partOf } from '../all-or-nothing.js';
import { answerWith, DirectStore, promised, report } from '../decide.js';
import { type FeatureReading, READ } from '../feature-reading.js';
import type {
  Charge,
  Check,
  CheckAnswer,
  Credit,
  HeldLease,
  Refund,
  ReserveEntry,
  Store,
  StoreDecision,
} from '../store.js';
import type { LearntRate, Lesson } from '../lesson.js';
import { noHistory } from '../store-decision.js';
import { Batcher } from './batcher.js';
import { ConfirmingBatcher, ConfirmingCalls } from './confirming-batcher.js';
import { CheckJob, type Job, OperationJob } from './jobs.js';
import { extraKeysOf, featureKeysOf, keyOf, moreKeysOf, noteKeyOf, rateKeyOf } from './keys.js';
import type { FeatureCall, GeneralProgram } from './general-program.js';
import type { TestClock } from './program.js';
import type { Reply } from './reply.js';
import { ScriptCalls } from './script-calls.js';
import { type Slots, slotsOf } from './slots.js';

/** The number of keys for the known state of an upstream, and for that and a learned rate. */
const NOTE = 1;
const NOTE_AND_RATE = 2;
const CREDIT_ID = 1;
const CLAIM = 1;
/** The work of leaving a queue: a slot between others becomes free, so the script searches the slots. */
const LEAVING_WORK = 12;
/** A node is only to blame if it had at least this share of the time of a check. */
const BLAMED_SHARE = 0.5;
/** Options of an operation that only reads. */
const LOOKS = [0, 0, true] as const;

/** Options of a `RedisStore`. */
export interface RedisStoreOptions {
  /**
   * The prefix of every key. It must not contain braces.
   * @default 'sluice'
   */
  prefix?: string;
  /**
   * The maximum total time of a check, in milliseconds.
   * @default 250
   */
  timeoutMs?: number;
  /**
   * The maximum time that a check waits for others, in milliseconds, while this process makes at least 2,000 checks per second: they are
   * sent in one call. At most half of `timeoutMs`, which includes it. 0 never waits.
   * @default 0
   */
  gatherMs?: number;
  /**
   * True if `close` closes the connection.
   * @default false
   */
  ownsClient?: boolean;
  /** @internal Called when the connection is no longer used. */
  release?: () => void;
  /** @internal */
  clock?: TestClock;
  /**
   * The script that decides.
   * @internal
   * @default that of the package
   */
  script?: string;
}

/** Counts on Redis. All checks made in one turn of the event loop are sent in one call of one script. */
export class RedisStore extends DirectStore implements Store {
  private readonly client: Connection;
  /** @internal */
  protected readonly prefix: string;
  /** @internal */
  protected readonly timeoutMs: number;
  private readonly ownsClient: boolean;
  private readonly release: (() => void) | undefined;
  /** @internal */
  protected readonly calls: ScriptCalls;
  /** @internal */
  protected readonly slots: Slots | undefined;
  private readonly batcher: Batcher;
  /** For limits whose units replicas confirm. */
  private confirming: ConfirmingBatcher | undefined;
  private readonly startConfirming: () => ConfirmingBatcher;
  /** The master that has a counter's slot, as the Cluster client knows it; absent with a single server. */
  readonly nodeOf?: (counter: Counter) => string;
  /** The slot of a counter in a Cluster. */
  readonly slotOf?: (counter: Counter) => number;
  /** Returns true if a node is the master of any slot, as the Cluster client knows it. */
  readonly hasNode?: (node: string) => boolean;

  /**
   * Creates a store on Redis.
   *
   * @param client the connection; it doesn't have to be ready yet
   * @param options prefix, timeouts and ownership of the connection
   */
  constructor(client: RedisClient | NodeRedisConnection, options?: RedisStoreOptions);
  /** @internal */
  constructor(client: RedisClient | NodeRedisConnection | Connection, options?: RedisStoreOptions);
  constructor(given: RedisClient | NodeRedisConnection | Connection, options: RedisStoreOptions = {}) {
    super();
    const client = connectionOf(given);
    this.client = client;
    const { prefix = 'sluice', timeoutMs = 250, gatherMs = 0, ownsClient = false, release, clock, script } = options;
    this.prefix = prefix;
    this.timeoutMs = timeoutMs;
    this.ownsClient = ownsClient;
    this.release = release;
    this.calls = new ScriptCalls(client, prefix, timeoutMs, clock, script);
    const slots = slotsOf(client, prefix, this.calls);
    if (slots !== undefined) {
      this.slots = slots;
      this.nodeOf = (counter) => slots.nodeOf(counter);
      this.slotOf = (counter) => slots.of(counter);
      this.hasNode = (node) => slots.hasNode(node);
    }
    this.batcher = new Batcher(this.calls, this.slots, undefined, gatherMs);
    this.startConfirming = () => {
      const own = duplicate(client, timeoutMs);
      const calls = new ConfirmingCalls(own, prefix, timeoutMs, clock, script);
      return new ConfirmingBatcher(own, calls, slotsOf(own, prefix, calls));
    };
  }

  /** Connects and loads the script. */
  async open(): Promise<void> {
    const since = performance.now();
    await connect(this.client);
    await this.calls.load(since);
  }

  /** Earlier calls are answered first. */
  async close(): Promise<void> {
    await Promise.all([this.batcher.drain(), this.confirming?.close()]);
    this.release?.();
    if (!this.ownsClient) return;
    try {
      if (this.client.status === 'ready') await withDeadline(this.client.quit(), this.timeoutMs);
    } catch {
      // The server is gone, so the connection doesn't have to be ended in order.
    } finally {
      if (this.client.status !== 'end') this.client.disconnect();
      else if (!isCluster(this.client)) endSentinels(this.client);
    }
  }

  /**
   * @internal A check has one deadline, no matter how many calls it takes; a check that is sent immediately has the deadline of its call.
   */
  decide(check: Check, answer: CheckAnswer): void {
    const { slots } = this;
    if (check.reserving === true) {
      this.enqueue(this.reservation(check, answer));
      return;
    }
    if (slots !== undefined && check.entries.length > 1) {
      const parts = slots.group(check.entries);
      if (parts.length > 1) {
        answerWith(this.decideAcrossSlots(check, parts), answer);
        return;
      }
    }
    // A check that has already waited gets the rest of its time.
    if (check.since === undefined) this.enqueue(new CheckJob(check, answer));
    else answerWith(this.decideUntil(check, check.since + this.timeoutMs), answer);
  }

  /** @internal */
  enqueue(job: Job): void {
    if (job.replicas === 0) this.batcher.enqueue(job);
    else (this.confirming ??= this.startConfirming()).enqueue(job);
  }

  /** Charges one slot after another. If a later slot rejects, the earlier charges are refunded. */
  private async decideAcrossSlots(check: Check, slots: CheckEntry[][]): Promise<StoreDecision[]> {
    const { timeoutMs } = this;
    const deadline = { at: (check.since ?? performance.now()) + timeoutMs, timeoutMs };
    const inTime = {
      decided: (part: Check) => this.decideUntil(part, deadline.at),
      refund: (refunds: readonly Refund[]) => this.refund(refunds),
    };
    const parts = slots.map((entries) => partOf(inTime, entries, { ...check, refundable: true }));
    const decisions = await allOrNothing(check.entries, parts, check.peek ?? false, deadline, check.upTo);
    return check.refundable === true ? decisions : decisions.map(({ chargedAt: _, ...decision }) => decision);
  }

  /** Decides a check that has already waited, or one of its parts, by a deadline of its own. */
  private async decideUntil(check: Check, deadline: number): Promise<StoreDecision[]> {
    const decisions = promised((answer) => this.enqueue(new CheckJob(check, answer)));
    const leftMs = deadline - performance.now();
    const late = leftMs < BLAMED_SHARE * this.timeoutMs ? outOfTime : storeTimeout;
    try {
      return await withDeadline(decisions, leftMs, this.timeoutMs, late);
    } catch (error) {
      const { slots } = this;
      if (!(error instanceof RateLimitStoreError) || slots === undefined) throw error;
      if (error.node !== undefined || error.isOutOfTime === true) throw error;
      const counter = check.entries[0]!;
      throw slots.blame(slots.nodeOf(counter), error, counter);
    }
  }

  private reservation(check: Check, answer: CheckAnswer): Job {
    const asked = check.entries as readonly ReserveEntry[];
    const entries = asked.map((entry) => (entry.ofStarts === true ? startsOf(entry) : entry));
    const { claim } = entries[0]!;
    const reserved: Check = { entries, refundable: true, peek: claim?.looks === true };
    return new OperationJob(
      entries,
      (program) => program.reserve(entries, claim),
      (reply) => (claim === undefined ? reply.check(reserved) : reply.claim(reserved)),
      (decisions) => report(answer, decisions),
      (error) => answer.failed(error),
      claim && entries.length,
    );
  }

  async refund(refunds: readonly Refund[]): Promise<void> {
    const counters = refunds.map((refund) => (refund.ofStarts === true ? startsOf(refund) : refund));
    await Promise.all(
      counters.map((refund) =>
        this.send(refund, (program) => program.refund(refund), succeeded, refund.claim && CLAIM, workOfRefund(refund)),
      ),
    );
  }

  credit(credit: Credit): Promise<number> {
    return this.send(credit, (program) => program.credit(credit), readWait, credit.id === undefined ? 0 : CREDIT_ID);
  }

  async penalize(charge: Charge): Promise<void> {
    await this.send(charge, (program) => program.penalize(charge), succeeded);
  }

  async block(counter: Counter, durationMs: number): Promise<boolean> {
    return (await this.send(counter, (program) => program.block(counter, durationMs), blocked)) === WAS_BLOCKED;
  }

  async learn(counter: Counter, lesson: Lesson): Promise<LearntRate | undefined> {
    const write = (program: GeneralProgram) => program.learn(counter, lesson);
    if (lesson.rate !== undefined) return this.send(counter, write, (reply) => reply.rate(), NOTE_AND_RATE);
    await this.send(counter, write, succeeded, NOTE);
    return undefined;
  }

  async renew(lease: HeldLease): Promise<boolean> {
    return (await this.send(lease, (program) => program.renew(lease), succeeded)) === 1;
  }

  async reset(counters: readonly Counter[]): Promise<boolean> {
    return (await Promise.all(counters.map((counter) => this.forget(counter)))).includes(true);
  }

  /** @internal Resets a counter, and deletes keys of a feature in the same step. Resolves to true if any of them existed. */
  async forget(counter: Counter, more: readonly string[] = []): Promise<boolean> {
    const { estimates, features = [], takesCredits } = counter.limit;
    const key = keyOf(this.prefix, counter);
    const ofFeatures = [...moreKeysOf(key, counter), ...featureKeysOf(key, counter)];
    const keys = [key, ...extraKeysOf(key, counter), ...ofFeatures, noteKeyOf(key), rateKeyOf(key), ...more];
    // Lapsed estimates come back first, since some features and credits keep a record of that.
    const isKept = takesCredits || features.some(({ script }) => script?.beside !== undefined);
    if (estimates !== undefined && isKept) await this.releaseLapsed(counter);
    // Credits that came back that way, or through another rate, are only recorded in the counter so far.
    if (takesCredits) await this.credit({ ...counter, units: 0 });
    return (await this.calls.delete(keys, this.nodeOf?.(counter))) > 0;
  }

  /** Removes lapsed estimates from a counter, a few at a time. */
  private async releaseLapsed(counter: Counter): Promise<void> {
    const none = { ...counter, units: 0 };
    let isDone: number;
    do {
      // If this write is lost, the estimates lapse again.
      isDone = await this.send(none, (program) => program.refund(none), succeeded, ...LOOKS);
    } while (isDone === 0);
  }

  async history(counter: Counter): Promise<WindowCount[]> {
    if (counter.limit.algorithm.history === undefined) throw noHistory(counter.limit);
    return this.send(counter, (program) => program.history(counter), readHistory, ...LOOKS);
  }

  /** @internal */
  [READ]<T>(_limit: CompiledLimit, reading: FeatureReading<T>): T {
    const { client, prefix, calls } = this;
    return reading.onRedis({
      client,
      prefix,
      now: () => calls.now(),
      time: () => calls.time(),
      guarded: (call) => calls.guarded(call),
    });
  }

  blockedFor(counter: Counter): Promise<number> {
    return this.send(counter, (program) => program.blockedFor(counter), readWait, ...LOOKS);
  }

  /** @internal Runs an operation of a feature on a counter. If `read` returns `undefined`, it is sent again. */
  ofFeature<T>(counter: Counter, call: FeatureCall, read: (reply: Reply) => T | undefined): Promise<T> {
    return this.send(counter, (program) => program.ofFeature(counter, call), read, call.keys.length);
  }

  /** @internal The fields of a hash that belongs to a feature. */
  async membersOf(key: string): Promise<string[]> {
    const replies = await this.calls.guarded(() => this.client.pipeline([['hkeys', key]]).exec());
    const [error, fields] = replies![0]!;
    if (error !== null) throw this.calls.failure(error);
    return (fields as unknown[]).map(String);
  }

  /** @internal The key of a counter. The keys that features have for it start with this key. */
  keyOf(counter: Counter): string {
    return keyOf(this.prefix, counter);
  }

  private send<T = number>(
    counter: Counter,
    write: (program: GeneralProgram) => void,
    read: (reply: Reply) => T | undefined,
    moreKeys?: number,
    moreWork?: number,
    looks?: boolean,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      this.enqueue(new OperationJob([counter], write, read, resolve, reject, moreKeys, moreWork, looks));
    });
  }
}

const succeeded = (reply: Reply) => reply.operation();
const readWait = (reply: Reply) => reply.wait();
const readHistory = (reply: Reply) => reply.history();
/** The script's reply to a block of a counter that already had a block or offences. */
const WAS_BLOCKED = 2;
const blocked = (reply: Reply) => reply.operation(WAS_BLOCKED);

function workOfRefund({ ticket, limit }: Refund): number {
  return ticket !== undefined && limit.algorithm.queue !== undefined ? LEAVING_WORK : 0;
}
