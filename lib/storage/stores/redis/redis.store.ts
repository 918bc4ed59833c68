import type { WindowCount } from '../../../engine/algorithms/algorithm.js';
import { algorithms } from '../../../engine/algorithms/index.js';
import { RateLimitArgumentError } from '../../../engine/errors/errors.js';
import { messages } from '../../../engine/errors/messages/general.js';
import type { CompiledLimit } from '../../../engine/limits/compiled-limit.js';
import { type Counter, startsOf } from '../../../engine/limits/counter.js';
import type { NodeRedisConnection } from '../../redis/node-redis/types.js';
import { connect, connectionOf, isCluster, type RedisClient } from '../../redis/client.js';
import type { Connection } from '../../redis/connection.js';
import { withDeadline } from '../../redis/deadline.js';
import { endSentinels } from '../../redis/sentinels.js';
import { answerWith, DirectStore, report } from '../decide.js';
import { type FeatureReading, READ } from '../feature-reading.js';
import type { Charge, Check, CheckAnswer, Credit, HeldLease, Refund, ReserveEntry, Store } from '../store.js';
import type { LearntRate, Lesson } from '../lesson.js';
import { Batcher } from './batcher.js';
import { ConfirmingBatcher } from './confirming-batcher.js';
import { CheckJob, type Job, OperationJob } from './jobs.js';
import { extraKeysOf, featureKeysOf, keyOf, moreKeysOf, noteKeyOf, rateKeyOf } from './keys.js';
import type { FeatureCall, GeneralProgram } from './general-program.js';
import type { TestClock } from './program.js';
import type { Reply } from './reply.js';
import { ScriptCalls } from './script-calls.js';
import { Slots } from './slots.js';
import { TimedChecks } from './timed-checks.js';

/** The keys of what is learnt of an upstream, and of a rate that is learnt, too. */
const NOTE = 1;
const NOTE_AND_RATE = 2;
const CREDIT_ID = 1;
const CLAIM = 1;
/** The work of leaving a queue: a slot is free between others then, which are looked through. */
const LEAVING_WORK = 12;
/** What only looks needs no more, and changes nothing. */
const LOOKS = [0, 0, true] as const;

/** Options of a `RedisStore`. */
export interface RedisStoreOptions {
  /**
   * The prefix of every key, without braces.
   * @default 'sluice'
   */
  prefix?: string;
  /**
   * How long a check may take in total, in milliseconds.
   * @default 250
   */
  timeoutMs?: number;
  /**
   * How long a check waits for others at most, in milliseconds, while this process asks 2,000 times a second or more: they travel in
   * one call. At most half of `timeoutMs`, which includes it. 0 never waits.
   * @default 0
   */
  gatherMs?: number;
  /**
   * Whether `close` closes the connection.
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

/** Counts on Redis: all checks made in one turn of the event loop travel in one call of one script. */
export class RedisStore extends DirectStore implements Store {
  private readonly client: Connection;
  private readonly prefix: string;
  /** @internal */
  protected readonly timeoutMs: number;
  private readonly ownsClient: boolean;
  private readonly release: (() => void) | undefined;
  /** @internal */
  protected readonly calls: ScriptCalls;
  /** @internal */
  protected readonly slots: Slots | undefined;
  private readonly batcher: Batcher;
  /** Of limits whose units replicas confirm. */
  private confirming: ConfirmingBatcher | undefined;
  private readonly startConfirming: () => ConfirmingBatcher;
  private readonly timedChecks: TimedChecks;
  /** The master that has a counter's slot, as the Cluster's client knows it; none of one server. */
  readonly nodeOf?: (counter: Counter) => string;
  /** The slot of a counter in a Cluster. */
  readonly slotOf?: (counter: Counter) => number;
  /** Whether it is a master of any slot, as the Cluster's client knows it. */
  readonly hasNode?: (node: string) => boolean;

  /**
   * Makes a store on Redis.
   *
   * @param client the connection, which need not be ready yet
   * @param options how it counts
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
    if (isCluster(client)) {
      const slots = new Slots(client, prefix, (slot) => this.calls.whyMoving(slot));
      this.slots = slots;
      this.nodeOf = (counter) => slots.nodeOf(counter);
      this.slotOf = (counter) => slots.of(counter);
      this.hasNode = (node) => slots.hasNode(node);
    }
    this.batcher = new Batcher(this.calls, this.slots, undefined, gatherMs);
    this.startConfirming = () => new ConfirmingBatcher(client, { prefix, timeoutMs, clock, script });
    this.timedChecks = new TimedChecks(this, timeoutMs, (refunds) => this.refund(refunds), this.slots);
  }

  /** Connects and loads the script. */
  async open(): Promise<void> {
    const since = performance.now();
    await connect(this.client);
    await this.calls.load(since);
  }

  /** What was asked before is answered first. */
  async close(): Promise<void> {
    await Promise.all([this.batcher.drain(), this.confirming?.close()]);
    this.release?.();
    if (!this.ownsClient) return;
    try {
      if (this.client.status === 'ready') await withDeadline(this.client.quit(), this.timeoutMs);
    } catch {
      // The server has gone: the connection need not be ended in order.
    } finally {
      if (this.client.status !== 'end') this.client.disconnect();
      else if (!isCluster(this.client)) endSentinels(this.client);
    }
  }

  /** @internal One check has one deadline, in however many calls it is made; one that is asked at once has the deadline of its call. */
  decide(check: Check, answer: CheckAnswer): void {
    const { slots } = this;
    if (check.reserving === true) {
      this.enqueue(this.reservation(check, answer));
      return;
    }
    if (slots !== undefined && check.entries.length > 1) {
      const parts = slots.group(check.entries);
      if (parts.length > 1) {
        answerWith(this.timedChecks.decideAcrossSlots(check, parts), answer);
        return;
      }
    }
    if (check.since === undefined) this.enqueue(new CheckJob(check, answer));
    else answerWith(this.timedChecks.decide(check, check.since), answer);
  }

  /** @internal */
  enqueue(job: Job): void {
    if (job.replicas === 0) this.batcher.enqueue(job);
    else (this.confirming ??= this.startConfirming()).enqueue(job);
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
    return this.send(
      credit,
      (program) => program.credit(credit),
      (reply) => reply.wait(),
      credit.id === undefined ? 0 : CREDIT_ID,
    );
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

  private async forget(counter: Counter): Promise<boolean> {
    const { estimates, features = [], takesCredits } = counter.limit;
    const key = keyOf(this.prefix, counter);
    const ofFeatures = [...moreKeysOf(key, counter), ...featureKeysOf(key, counter)];
    const keys = [key, ...extraKeysOf(key, counter), ...ofFeatures, noteKeyOf(key), rateKeyOf(key)];
    // What had lapsed by now came back: some features keep that, and so do credits.
    const isKept = takesCredits || features.some(({ script }) => script?.beside !== undefined);
    if (estimates !== undefined && isKept) await this.releaseLapsed(counter);
    // Credits that came back, by that or another rate, are noted at the counter only.
    if (takesCredits) await this.credit({ ...counter, units: 0 });
    return (await this.calls.delete(keys, this.nodeOf?.(counter))) > 0;
  }

  /** Estimates that have lapsed come off a counter, some of them at a time. */
  private async releaseLapsed(counter: Counter): Promise<void> {
    const none = { ...counter, units: 0 };
    let isDone: number;
    do {
      // Whatever lapsed, lapses again wherever that is lost.
      isDone = await this.send(none, (program) => program.refund(none), succeeded, ...LOOKS);
    } while (isDone === 0);
  }

  async history(counter: Counter): Promise<WindowCount[]> {
    if (counter.limit.algorithm.history === undefined) {
      throw new RateLimitArgumentError(messages.noHistory(counter.limit.name, algorithms.withAny('history')));
    }
    return this.send(
      counter,
      (program) => program.history(counter),
      (reply) => reply.history(),
      ...LOOKS,
    );
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
    return this.send(
      counter,
      (program) => program.blockedFor(counter),
      (reply) => reply.wait(),
      ...LOOKS,
    );
  }

  /** @internal Does what only a feature does with a counter. `read` returns `undefined` if it is to be asked again. */
  ofFeature<T>(counter: Counter, call: FeatureCall, read: (reply: Reply) => T | undefined): Promise<T> {
    return this.send(counter, (program) => program.ofFeature(counter, call), read, call.keys.length);
  }

  /** @internal The fields of a hash that a feature keeps. */
  async membersOf(key: string): Promise<string[]> {
    const replies = await this.calls.guarded(() => this.client.pipeline([['hkeys', key]]).exec());
    const [error, fields] = replies![0]!;
    if (error !== null) throw this.calls.failure(error);
    return (fields as unknown[]).map(String);
  }

  /** @internal Deletes keys of one slot that a feature keeps. */
  async forgetKeys(keys: readonly string[]): Promise<void> {
    if (keys.length > 0) await this.calls.delete(keys, undefined);
  }

  /** @internal The key of a counter: what a feature keeps beside it begins so. */
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
/** The script's reply to a block of a counter that already had a block or offences. */
const WAS_BLOCKED = 2;
const blocked = (reply: Reply) => reply.operation(WAS_BLOCKED);

function workOfRefund({ ticket, limit }: Refund): number {
  return ticket !== undefined && limit.algorithm.queue !== undefined ? LEAVING_WORK : 0;
}
