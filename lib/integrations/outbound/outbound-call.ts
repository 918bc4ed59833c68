import { Lease } from '../../app/limiter/lease.js';
import { askOf, type LimitAsk } from '../../app/limiter/limit-checks.js';
import { settle } from '../../app/limiter/settlement.js';
import { RateLimitTimeoutError } from '../../app/waiting/waiting-errors.js';
import type { Turn } from '../../app/waiting/turn.js';
import type { WaitQueues } from '../../app/waiting/wait-queues.js';
import type { WaitOptions } from '../../app/waiting/waiting-call.js';
import { argumentError, RateLimitStoreError } from '../../engine/errors/errors.js';
import { logger, OnceLogger } from '../../engine/errors/logger.js';
import { messages } from '../../engine/errors/messages/general.js';
import { outboundMessages } from '../../engine/errors/messages/outbound.js';
import type { UpstreamResponse } from '../../engine/limit-headers/upstream-report.js';
import { assertActual } from '../../engine/limits/arguments.js';
import type { CheckEntry } from '../../engine/limits/counter.js';
import type { Awaitable } from '../../engine/util/awaitable.js';
import { chargeOf, heldOf } from '../../storage/stores/store-decision.js';
import type { HeldLease, Store } from '../../storage/stores/store.js';
import { type ReadReport, readUpstream } from './headers/read-upstream.js';
import type { Flights } from './learning/flights.js';
import { LearnedRule, type OutboundRule } from './learning/learned-rules.js';
import { Learner } from './learning/learner.js';
import type { OutboundSettings } from './outbound-options.js';

const log = new OnceLogger(logger);

/** Limits calls of one kind: checks their limits, and settles their actual cost. It doesn't depend on a client. */
export class OutboundCaller<Sent, Answer> {
  readonly learner: Learner | undefined;

  constructor(
    readonly rules: readonly OutboundRule[],
    readonly settings: OutboundSettings<Sent, Answer>,
    readonly stores: PermitStores,
    flights: Flights,
  ) {
    this.learner = settings.learn === false ? undefined : new Learner(flights, settings);
  }

  /**
   * Makes a call that was requested at `since`, a time of the monotonic clock. `copy` creates a copy of the request for each of the app's
   * functions. Rejects if one of these returns an invalid value.
   */
  async call(copy: () => Sent, signal: AbortSignal | undefined, since = performance.now()): Promise<OutboundCall> {
    const { timeoutMs, ageingMs } = this.settings;
    const asks: LimitAsk<OutboundRule>[] = [];
    for (const rule of this.rules) {
      const ask = await askOf(rule, this.settings, copy);
      if (rule instanceof LearnedRule) rule.noteCost(ask.identity, ask.cost);
      asks.push(ask);
    }
    const aheadMs = this.priorityOf(copy) * ageingMs;
    signal?.throwIfAborted();
    return new OutboundCall(this, asks, { timeoutMs, signal, since, aheadMs });
  }

  /**
   * Settles the actual cost of a call, if the app's function returns one. `copy` creates a copy of the response for each limit. Never
   * rejects.
   */
  async settle(permit: Permit, copy: () => Answer): Promise<void> {
    if (this.settings.settle === undefined) return;
    const counted = permit.entries.filter(({ limit }) => limit.algorithm.leases === undefined);
    await Promise.all(counted.map((entry) => this.settleOne(permit, entry, copy)));
  }

  private async settleOne(permit: Permit, entry: CheckEntry, copy: () => Answer): Promise<void> {
    const { settle, location } = this.settings;
    const { name } = entry.limit;
    try {
      const actual = await settle!(copy(), name);
      if (actual === undefined) return;
      assertActual(actual);
      await permit.settle(entry, actual);
    } catch (error) {
      // The store reports its own errors.
      if (!(error instanceof RateLimitStoreError)) log.error(outboundMessages.settleFailed(location, name), error);
    }
  }

  private priorityOf(copy: () => Sent): number {
    const { priority, location } = this.settings;
    const given: unknown = typeof priority === 'function' ? priority(copy()) : priority;
    if (Number.isFinite(given)) return given as number;
    throw argumentError('SLUICE_INVALID_RESULT', outboundMessages.wrongPriority(location, given));
  }
}

/** The stores that permits return their units to. */
interface PermitStores {
  readonly store: Store;
  readonly waits: WaitQueues;
}

/** The units that a call took from its limits. With a permit, the call may be sent. */
export class Permit {
  private readonly held: readonly HeldLease[];
  private readonly lease: Lease;

  constructor(
    private readonly turn: Turn,
    private readonly stores: PermitStores,
  ) {
    this.held = turn.entries.flatMap((entry, index) => heldOf(entry, turn.decisions[index]!) ?? []);
    this.lease = new Lease(this.held, stores.store, stores.waits).keepAlive();
  }

  get entries(): readonly CheckEntry[] {
    return this.turn.entries;
  }

  /** True if it holds units, which must be released. */
  get holds(): boolean {
    return this.held.length > 0;
  }

  /** Releases the units that it holds, once. */
  release(): Promise<void> {
    return this.lease.release();
  }

  /** Charges or refunds the difference to the actual cost of a call. */
  async settle(entry: CheckEntry, actual: number): Promise<void> {
    const { store, waits } = this.stores;
    const { limit, cost } = entry;
    const decision = this.turn.decisions[this.entries.indexOf(entry)]!;
    if (!decision.allowed || limit.off) return;
    await settle(store, chargeOf(entry, decision), actual);
    if (actual < cost) waits.wake(entry);
  }
}

/** The minimum time that reading a body may delay a call, in milliseconds, even if calls must not wait for their turn. */
const LEAST_BODY_MS = 1000;
const MOST_BODY_MS = 30_000;

/** The steps of an attempt that depend on the client. */
interface CallClient<Answer> {
  /** Sends the request once. Rejects if there is no response. */
  readonly send: () => Promise<Answer>;
  /** The response as the parsers get it. */
  readonly read: (answer: Answer) => Awaitable<UpstreamResponse>;
  readonly discard: (answer: Answer) => void;
}

/** An answer to pass on, and the permit of its request. */
export interface Answered<Answer> {
  readonly answer: Answer;
  readonly permit: Permit;
}

/** One call to an upstream, with all attempts to send it. Each attempt enters, is sent, and is answered or fails. */
export class OutboundCall {
  private attempt = 0;
  private sentAt = 0;
  private permit: Permit | undefined;

  constructor(
    private readonly caller: Pick<OutboundCaller<never, never>, 'settings' | 'stores' | 'learner'>,
    private readonly asks: readonly LimitAsk<OutboundRule>[],
    private readonly turn: Required<Omit<WaitOptions, 'notBefore' | 'watcher'>>,
  ) {}

  get mayRepeat(): boolean {
    return this.attempt < this.caller.settings.attempts;
  }

  /** The maximum time that reading the body of a response may delay the call, in milliseconds. */
  get bodyMs(): number {
    return Math.min(Math.max(this.leftMs, LEAST_BODY_MS), MOST_BODY_MS);
  }

  /** The checks of its limits as currently configured. */
  private readonly entries = (): CheckEntry[] =>
    this.asks.map(({ rule, identity, cost }) => {
      return { limit: rule.usualLimit(identity), identity, cost, priority: rule.fixedPriority };
    });

  private get leftMs(): number {
    return this.turn.since + this.turn.timeoutMs - performance.now();
  }

  /** Sends the call, again if necessary, until there is an answer to pass on. Rejects if it can't be sent, or isn't answered. */
  async exchange<Answer>(sent: SentCall, { send, read, discard }: CallClient<Answer>): Promise<Answered<Answer>> {
    let permit = await this.enter();
    for (;;) {
      const answer = await send().catch((error: unknown) => {
        this.failed();
        throw error;
      });
      const response = await read(answer);
      const waitMs = this.waitMs(sent, this.answered(response), response.status);
      if (waitMs === undefined) return { answer, permit };
      const next = await this.reenter(waitMs).catch((error: unknown) => {
        discard(answer);
        throw error;
      });
      if (next === undefined) return { answer, permit };
      permit = next;
      discard(answer);
    }
  }

  /** Waits for the turn of an attempt, and until `notBefore` on the monotonic clock. The caller then sends it at once. */
  async enter(notBefore = 0): Promise<Permit> {
    const { stores, learner } = this.caller;
    const { waits } = stores;
    if (waits.isClosed) throw new RateLimitStoreError(messages.closed(), { code: 'SLUICE_SHUTTING_DOWN' });
    const rules = this.asks.map(({ rule }) => rule);
    const taken = await waits.wait({ rules, entries: this.entries }, { ...this.turn, notBefore, watcher: learner });
    this.permit = new Permit(taken, stores);
    this.attempt++;
    this.sentAt = performance.now();
    learner?.sent(this.permit.entries);
    return this.permit;
  }

  /** Records that no response came, and releases the units of the attempt. */
  failed(): void {
    const { permit } = this;
    if (permit === undefined) return;
    this.caller.learner?.failed(permit.entries);
    void permit.release();
  }

  /** Records a response, and reports the upstream's limits. */
  answered(response: UpstreamResponse): ReadReport {
    const { settings, stores, learner } = this.caller;
    const report = readUpstream(settings.parse, response, settings.maxLearnedWaitMs);
    if (learner !== undefined) {
      const { entries } = this.permit!;
      learner.answered(entries, report, performance.now() - this.sentAt);
      // Units that are no longer in flight are available to waiting calls.
      for (const entry of entries) stores.waits.wake(entry);
    }
    return report;
  }

  /**
   * How long an answered call has to wait before it is sent again, in milliseconds; `undefined` if it must not be sent again or there isn't
   * enough time.
   */
  waitMs(sent: SentCall, report: ReadReport, status: number): number | undefined {
    const waitMs = this.mayRepeat ? retryWaitMs(sent, report, status, this.attempt, Math.random()) : undefined;
    return waitMs === undefined || waitMs > this.leftMs ? undefined : waitMs;
  }

  /**
   * Releases the units and waits for `waitMs`, keeping the place in the queue. Returns `undefined` if its time is up before its turn.
   */
  async reenter(waitMs: number): Promise<Permit | undefined> {
    await this.permit!.release();
    try {
      return await this.enter(performance.now() + waitMs);
    } catch (error) {
      if (error instanceof RateLimitTimeoutError) return undefined;
      throw error;
    }
  }
}

/** The first wait if the upstream sends none. Each further wait is twice the last. */
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 30_000;
/** The share of a wait that is added at random, so that calls don't all come back at once; and the maximum to add. */
const JITTER = 0.1;
const MOST_JITTER_MS = 1000;
const SERVICE_UNAVAILABLE = 503;
/** With other methods, a second call may repeat an action. */
const IDEMPOTENT = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE']);

export interface SentCall {
  readonly method: string;
  /** True if it has an `Idempotency-Key`. */
  readonly hasKey: boolean;
  /** True if its body can be sent again. */
  readonly canRepeat: boolean;
}

/**
 * Returns how long to wait before a call is sent again, in milliseconds, and never less than the upstream requires; `undefined` if it must
 * not be sent again.
 *
 * @param attempt how many times it was sent
 * @param random from 0 to 1
 */
export function retryWaitMs(
  { method, hasKey, canRepeat }: SentCall,
  { refused, retryAfterMs }: ReadReport,
  status: number,
  attempt: number,
  random: number,
): number | undefined {
  if (!refused || !canRepeat) return undefined;
  // The upstream may have started to process it.
  const isUnclear = status === SERVICE_UNAVAILABLE && retryAfterMs === undefined;
  if (isUnclear && !hasKey && !IDEMPOTENT.has(method.toUpperCase())) return undefined;
  if (retryAfterMs !== undefined) return retryAfterMs + random * Math.min(JITTER * retryAfterMs, MOST_JITTER_MS);
  const longest = Math.min(FIRST_WAIT_MS * 2 ** (attempt - 1), LONGEST_WAIT_MS);
  return longest * (0.5 + random / 2);
}
