import type { WindowCount } from '../../algorithms/algorithm.js';
import { algorithms } from '../../algorithms/index.js';
import { RateLimitArgumentError, RateLimitStoreError } from '../../errors/errors.js';
import { messages } from '../../errors/messages.js';
import type { CheckEntry, Counter } from '../../limits/counter.js';
import { connect, isCluster, type RedisClient } from '../../redis/client.js';
import { withDeadline } from '../../redis/deadline.js';
import { allOrNothing, type Deadline } from '../all-or-nothing.js';
import type { Charge, Check, HeldLease, Refund, ReserveEntry, Store, StoreDecision } from '../store.js';
import { refundsOf } from '../store-decision.js';
import { Batcher, keysOf, workOf } from './batcher.js';
import { extraKeysOf, keyOf } from './keys.js';
import type { Program, TestClock } from './program.js';
import { ScriptCalls } from './script-calls.js';
import { Slots } from './slots.js';

/** How a `RedisStore` counts. */
export interface RedisStoreOptions {
  /**
   * What every key begins with; no braces.
   * @default 'sluice'
   */
  prefix?: string;
  /**
   * How long a check may take, in milliseconds, with all that it waits for.
   * @default 250
   */
  timeoutMs?: number;
  /**
   * Whether `close` closes the connection.
   * @default false
   */
  ownsClient?: boolean;
  /** @internal Is called when the connection is used no longer. */
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

/** Counts on Redis: all checks that are made in one turn of the event loop travel in one call of one script. */
export class RedisStore implements Store {
  private readonly prefix: string;
  private readonly timeoutMs: number;
  private readonly ownsClient: boolean;
  private readonly release: (() => void) | undefined;
  private readonly calls: ScriptCalls;
  private readonly slots: Slots | undefined;
  private readonly batcher: Batcher;
  /** The master that has a counter's slot, as the Cluster's client knows it; none of one server. */
  readonly nodeOf?: (counter: Counter) => string;
  /** Whether it is a master of any slot, as the Cluster's client knows it. */
  readonly hasNode?: (node: string) => boolean;

  /**
   * Asks Redis.
   *
   * @param client the connection, which need not be up yet
   * @param options how it counts
   */
  constructor(
    private readonly client: RedisClient,
    options: RedisStoreOptions = {},
  ) {
    const { prefix = 'sluice', timeoutMs = 250, ownsClient = false, release, clock, script } = options;
    this.prefix = prefix;
    this.timeoutMs = timeoutMs;
    this.ownsClient = ownsClient;
    this.release = release;
    this.calls = new ScriptCalls(client, prefix, timeoutMs, clock, script);
    if (isCluster(client)) {
      const slots = new Slots(client, prefix);
      this.slots = slots;
      this.nodeOf = (counter) => slots.nodeOf(counter);
      this.hasNode = (node) => slots.hasNode(node);
    }
    this.batcher = new Batcher(this.calls, this.slots);
  }

  /** Connects and loads the script. */
  async open(): Promise<void> {
    const since = performance.now();
    await connect(this.client);
    await this.calls.load(since);
  }

  /** What was asked before is answered first. */
  async close(): Promise<void> {
    await this.batcher.drain();
    this.release?.();
    if (!this.ownsClient) return;
    try {
      if (this.client.status === 'ready') await withDeadline(this.client.quit(), this.timeoutMs);
    } catch {
      // The server has gone: the connection need not be ended in order.
    } finally {
      if (this.client.status !== 'end') this.client.disconnect();
    }
  }

  check(checks: readonly Check[]): Promise<StoreDecision[][]> {
    const only = checks[0];
    if (checks.length === 1 && only !== undefined) return this.decide(only).then((decisions) => [decisions]);
    return Promise.all(checks.map((check) => this.decide(check)));
  }

  async reserve(reservation: ReserveEntry): Promise<StoreDecision> {
    const entries = [reservation];
    const [decision] = await this.batcher.enqueue(
      reservation,
      (program) => program.reserve(reservation),
      (reply) => reply.check({ entries, refundable: true }),
    );
    return decision!;
  }

  async refund(refunds: readonly Refund[]): Promise<void> {
    await Promise.all(refunds.map((refund) => this.operate(refund, (program) => program.refund(refund))));
  }

  async penalize(charge: Charge): Promise<void> {
    await this.operate(charge, (program) => program.penalize(charge));
  }

  async block(counter: Counter, durationMs: number): Promise<void> {
    await this.operate(counter, (program) => program.block(counter, durationMs));
  }

  async renew(lease: HeldLease): Promise<boolean> {
    return (await this.operate(lease, (program) => program.renew(lease))) === 1;
  }

  async reset(counters: readonly Counter[]): Promise<void> {
    const calls = counters.map((counter) => {
      const key = keyOf(this.prefix, counter);
      return this.calls.guarded(() => this.client.del(key, ...extraKeysOf(key, counter)));
    });
    await Promise.all(calls);
  }

  async history(counter: Counter): Promise<WindowCount[]> {
    if (counter.limit.algorithm.history === undefined) {
      throw new RateLimitArgumentError(messages.noHistory(counter.limit.name, algorithms.withAny('history')));
    }
    return this.batcher.enqueue(
      counter,
      (program) => program.history(counter),
      (reply) => reply.history(),
    );
  }

  /** One check has one deadline, in however many calls it is made; one that is asked at once has the deadline of its call. */
  private decide(check: Check): Promise<StoreDecision[]> {
    const { slots } = this;
    if (slots !== undefined && check.entries.length > 1) {
      const parts = slots.group(check.entries);
      if (parts.length > 1) return this.decideAcrossSlots(check, parts);
    }
    const decided = this.enqueue(check);
    return check.since === undefined ? decided : this.inTime(decided, check, check.since + this.timeoutMs);
  }

  /** Slot by slot; what was charged is given back when a later slot refuses. */
  private async decideAcrossSlots(check: Check, slots: CheckEntry[][]): Promise<StoreDecision[]> {
    const deadline: Deadline = { at: (check.since ?? performance.now()) + this.timeoutMs, timeoutMs: this.timeoutMs };
    const parts = slots.map((entries) => ({
      entries,
      ask: (peek: boolean) => {
        const part = { entries, peek, refundable: true };
        return this.inTime(this.enqueue(part), part, deadline.at);
      },
      giveBack: (charged: readonly StoreDecision[]) => this.refund(refundsOf(entries, charged)),
    }));
    const decisions = await allOrNothing(check.entries, parts, check.peek ?? false, deadline);
    return check.refundable === true ? decisions : decisions.map(({ chargedAt: _, ...decision }) => decision);
  }

  private enqueue(check: Check): Promise<StoreDecision[]> {
    return this.batcher.enqueue(
      check.entries[0]!,
      (program) => program.check(check),
      (reply) => reply.check(check),
      check.entries.reduce((keys, { limit }) => keys + keysOf(limit), 0),
      check.entries.reduce((work, { limit }) => work + workOf(limit), 0),
    );
  }

  /** A check that waited since it was asked has what is left of its time. */
  private inTime(decided: Promise<StoreDecision[]>, check: Check, deadline: number): Promise<StoreDecision[]> {
    return withDeadline(decided, deadline - performance.now(), this.timeoutMs).catch((error: unknown) => {
      if (error instanceof RateLimitStoreError) error.node ??= this.nodeOf?.(check.entries[0]!);
      throw error;
    });
  }

  private operate(counter: Counter, write: (program: Program) => void): Promise<number> {
    return this.batcher.enqueue(counter, write, (reply) => reply.operation());
  }
}
