import { Logger } from '@nestjs/common';
import type { WindowCount } from '../../algorithms/algorithm.js';
import { type CompiledLimit, STORE_ERROR_POLICIES, type StoreErrorPolicy } from '../../limits/compiled-limit.js';
import { Attempts } from '../../errors/attempts.js';
import { RateLimitStoreError } from '../../errors/errors.js';
import { messages } from '../../errors/messages.js';
import { Circuit, type CircuitReport } from './circuit.js';
import type { Charge, Check, HeldLease, Refund, ReserveEntry, Store, StoreDecision } from '../store.js';
import type { CheckEntry, Counter } from '../../limits/counter.js';

const logger = new Logger('RateLimit');

/** What the store tells of itself, or of one of its nodes, once a change. */
export type StoreReport = (CircuitReport & { readonly node?: string }) | { state: 'replaced'; readonly node: string };

/** While a node fails, it is looked so often whether others have taken over. */
const LOOK_AFTER_MS = 1000;

export interface FallbackStoreOptions {
  /** Is told when the first store, or a node of it, begins to fail and when it is back. */
  report?: (report: StoreReport) => void;
  /**
   * Whether closing closes the first store, too.
   * @default true
   */
  closesPrimary?: boolean;
  /**
   * The part of each limit that this instance allows while it counts for itself.
   * @default 1
   */
  localShare?: number;
}

/**
 * Asks one store, and does what each limit's `onStoreError` says while that one fails. A circuit breaker stops asking a store
 * that fails repeatedly; of a store with several nodes, only the node that fails. Only failures lead here, never a refusal.
 */
export class FallbackStore implements Store {
  private readonly report: (report: StoreReport) => void;
  private readonly closesPrimary: boolean;
  private readonly localShare: number;
  /** By node; that of the store as a whole has no name. */
  private readonly circuits = new Map<string, Circuit>();
  /** A function of the user's that fails may do so for each check. */
  private readonly attempts = new Attempts(logger);
  private lookedAt = -Infinity;
  private readonly shares = new WeakMap<CompiledLimit, CompiledLimit>();

  constructor(
    private readonly primary: Store,
    private readonly local: Store,
    { report = () => undefined, closesPrimary = true, localShare = 1 }: FallbackStoreOptions = {},
  ) {
    this.report = report;
    this.closesPrimary = closesPrimary;
    this.localShare = localShare;
  }

  /** Whether the first store, or a node of it, is left alone for the moment, since it failed repeatedly. */
  get isBroken(): boolean {
    return [...this.circuits].some(([node, { isOpen }]) => isOpen && this.isCurrent(node));
  }

  /** Asks the nodes that are left alone whether they are back: nobody else may. Never rejects. */
  async probe(): Promise<void> {
    const left = [...this.circuits.values()].filter(({ isOpen }) => isOpen);
    const asking = left.flatMap(({ counter }) => {
      if (counter === undefined) return [];
      const check = { entries: [{ ...counter, cost: 1 }], peek: true };
      return [this.ask([counter], () => this.primary.check([check])).catch(() => undefined)];
    });
    await Promise.all(asking);
    this.forgetReplaced();
  }

  /** Never rejects: an app starts without its store, and is told so. */
  async open(): Promise<void> {
    try {
      await this.primary.open?.();
    } catch (error) {
      this.circuitOf('').absent(error instanceof Error ? error : new Error(String(error)));
    }
  }

  async close(): Promise<void> {
    await this.local.close();
    if (this.closesPrimary) await this.primary.close();
  }

  async check(checks: readonly Check[]): Promise<StoreDecision[][]> {
    // Of many nodes one can fail, and then only the checks that need it.
    if (checks.length > 1 && this.primary.nodeOf !== undefined) {
      const answers = await Promise.all(checks.map((check) => this.check([check])));
      return answers.flat();
    }
    try {
      return await this.ask(checks.length === 1 ? checks[0]!.entries : [], () => this.primary.check(checks));
    } catch (error) {
      if (!(error instanceof RateLimitStoreError)) throw error;
      const all = checks.flatMap(({ entries }) => entries);
      const policies = new Map(
        all.map((entry) => [entry, policyOf({ ...entry, units: entry.cost }, error, this.attempts)]),
      );
      if (all.some((entry) => policies.get(entry) === 'deny')) throw error;
      return Promise.all(checks.map((check) => this.fallBack(check, policies)));
    }
  }

  async reserve(reservation: ReserveEntry): Promise<StoreDecision> {
    try {
      return await this.ask([reservation], () => this.primary.reserve(reservation));
    } catch (error) {
      if (!(error instanceof RateLimitStoreError)) throw error;
      const policy = policyOf({ ...reservation, units: reservation.cost }, error, this.attempts);
      if (policy === 'deny') throw error;
      if (policy !== 'local') return uncountedDecision(reservation);
      return { ...(await this.local.reserve(this.share(reservation))), source: 'fallback' };
    }
  }

  async refund(refunds: readonly Refund[]): Promise<void> {
    const local = refunds.filter(({ source }) => source === 'fallback');
    const rest = refunds.filter(({ source }) => source !== 'fallback');
    if (local.length > 0) await this.local.refund(local.map((refund) => this.share(refund)));
    if (rest.length === 0) return;
    try {
      await this.ask(rest, () => this.primary.refund(rest));
    } catch (error) {
      if (!(error instanceof RateLimitStoreError)) throw error;
      // What Redis charged can be given back there only.
      const policies = rest.map((refund) =>
        refund.source === undefined ? policyOf(refund, error, this.attempts) : 'deny',
      );
      const counted = rest.filter((_, index) => policies[index] === 'local');
      if (counted.length > 0) await this.local.refund(counted.map((refund) => this.share(refund)));
      if (policies.includes('deny')) throw error;
    }
  }

  async penalize(charge: Charge): Promise<void> {
    if (charge.source === 'fallback') return this.local.penalize(this.share(charge));
    try {
      await this.ask([charge], () => this.primary.penalize(charge));
    } catch (error) {
      if (!(error instanceof RateLimitStoreError)) throw error;
      const policy = policyOf(charge, error, this.attempts);
      if (policy === 'deny') throw error;
      if (policy === 'local') await this.local.penalize(this.share(charge));
    }
  }

  async block(counter: Counter, durationMs: number): Promise<void> {
    await this.local.block(this.share(counter), durationMs);
    await this.ask([counter], () => this.primary.block(counter, durationMs));
  }

  renew(lease: HeldLease): Promise<boolean> {
    return lease.source === 'fallback'
      ? this.local.renew(this.share(lease))
      : this.ask([lease], () => this.primary.renew(lease));
  }

  async reset(counters: readonly Counter[]): Promise<void> {
    await this.local.reset(counters.map((counter) => this.share(counter)));
    await this.ask(counters, () => this.primary.reset(counters));
  }

  history(counter: Counter): Promise<WindowCount[]> {
    return this.ask([counter], () => this.primary.history(counter));
  }

  private async fallBack(
    { entries, ...rest }: Check,
    policies: ReadonlyMap<CheckEntry, StoreErrorPolicy>,
  ): Promise<StoreDecision[]> {
    const counted = entries.filter((entry) => policies.get(entry) === 'local');
    const shares = counted.map((entry) => this.share(entry));
    const [local = []] = counted.length > 0 ? await this.local.check([{ ...rest, entries: shares }]) : [];
    return entries.map((entry) => {
      const decision = local[counted.indexOf(entry)] ?? uncountedDecision(entry);
      return { ...decision, source: 'fallback' };
    });
  }

  /** The same counter, of the part of its limit that this instance allows while it counts for itself. */
  private share<C extends Counter>(counter: C): C {
    if (this.localShare === 1) return counter;
    let limit = this.shares.get(counter.limit);
    if (limit === undefined) this.shares.set(counter.limit, (limit = counter.limit.share(this.localShare)));
    return { ...counter, limit };
  }

  /** Asks the first store for these counters, unless a node that has some of them is left alone. */
  private ask<T>(counters: readonly Counter[], call: () => Promise<T>): Promise<T> {
    const { primary } = this;
    if (primary.nodeOf === undefined) return this.circuitOf('', counters[0]).run(call);
    const nodes = new Map(counters.map((counter) => [primary.nodeOf!(counter), counter]));
    // What could not be opened is there now.
    let guarded = async () => {
      const answer = await call();
      this.circuitOf('').recovered();
      this.lookForReplaced();
      return answer;
    };
    for (const [node, counter] of nodes) {
      const next = guarded;
      guarded = () => this.circuitOf(node, counter).run(next);
    }
    return guarded();
  }

  private isCurrent(node: string): boolean {
    return this.primary.hasNode?.(node) ?? true;
  }

  private lookForReplaced(): void {
    for (const { isFailing } of this.circuits.values()) {
      if (!isFailing) continue;
      const now = performance.now();
      if (now - this.lookedAt < LOOK_AFTER_MS) return;
      this.lookedAt = now;
      return this.forgetReplaced();
    }
  }

  /** Forgets nodes that have no counters any more, as a master that failed and was replaced: nobody would find it back. */
  private forgetReplaced(): void {
    for (const [node, { isFailing }] of this.circuits) {
      if (node === '' || this.isCurrent(node)) continue;
      this.circuits.delete(node);
      if (isFailing) this.report({ state: 'replaced', node });
    }
  }

  private circuitOf(node: string, counter?: Counter): Circuit {
    let circuit = this.circuits.get(node);
    if (circuit === undefined) {
      this.forgetReplaced();
      const told = node === '' ? {} : { node };
      circuit = new Circuit(node, (report) => this.report({ ...report, ...told }));
      this.circuits.set(node, circuit);
    }
    circuit.counter = counter ?? circuit.counter;
    return circuit;
  }
}

const isPolicy = (got: StoreErrorPolicy) => STORE_ERROR_POLICIES.includes(got);

/** What to do about a limit whose store gave this error. A function that fails must not make a request fail. */
function policyOf(charge: Charge, error: RateLimitStoreError, attempts: Attempts): StoreErrorPolicy {
  const policy = chosenPolicy(charge, error, attempts);
  // A shadow refuses nobody.
  return policy === 'deny' && charge.limit.shadow ? 'allow' : policy;
}

function chosenPolicy(
  { limit, identity, units }: Charge,
  error: RateLimitStoreError,
  attempts: Attempts,
): StoreErrorPolicy {
  const { onStoreError, name } = limit;
  if (typeof onStoreError !== 'function') return onStoreError;
  const choose = () => onStoreError(error, { limit: name, key: identity, cost: units });
  const told = { message: messages.policyFailed(name), wrong: messages.wrongPolicy };
  return attempts.call(choose, isPolicy, told) ?? 'local';
}

/** What lets a request pass without counting it. */
export function uncountedDecision({ limit }: CheckEntry): StoreDecision {
  return {
    allowed: true,
    limit: limit.name,
    quota: limit.quota,
    remaining: limit.quota,
    retryAfterMs: 0,
    resetAfterMs: 0,
    delayMs: 0,
    source: 'fallback',
  };
}
