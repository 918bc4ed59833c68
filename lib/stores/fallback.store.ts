import { BrokenCircuitError, circuitBreaker, CircuitState, ConsecutiveBreaker, handleType } from 'cockatiel';
import type { WindowCount } from '../algorithms/algorithm.js';
import { RateLimitStoreError } from '../errors/errors.js';
import { messages } from '../errors/messages.js';
import type {
  Charge,
  Check,
  CheckEntry,
  Counter,
  HeldLease,
  Refund,
  ReserveEntry,
  Store,
  StoreDecision,
} from './store.js';

/** What the store tells of itself, once a change. */
export type StoreReport = { state: 'failing'; error: Error } | { state: 'recovered' };

export interface FallbackStoreOptions {
  /** Is told when the first store begins to fail and when it is back. */
  report?: (report: StoreReport) => void;
  /**
   * Whether closing closes the first store, too.
   * @default true
   */
  closesPrimary?: boolean;
}

/** So many failures in a row, and the store is not asked until a probe succeeds. */
const FAILURES = 5;
/** How long a store that failed is left alone before it is probed with a check. */
const PROBE_AFTER_MS = 1000;

/**
 * Asks one store, and does what each limit's `onStoreError` says while that one fails. A circuit breaker stops asking a store
 * that fails repeatedly. Only failures lead here, never a refusal.
 */
export class FallbackStore implements Store {
  private readonly breaker = circuitBreaker(handleType(RateLimitStoreError), {
    breaker: new ConsecutiveBreaker(FAILURES),
    halfOpenAfter: PROBE_AFTER_MS,
  });
  private readonly report: (report: StoreReport) => void;
  private readonly closesPrimary: boolean;
  private failing = false;

  constructor(
    private readonly primary: Store,
    private readonly local: Store,
    { report = () => undefined, closesPrimary = true }: FallbackStoreOptions = {},
  ) {
    this.report = report;
    this.closesPrimary = closesPrimary;
  }

  /** Never rejects: an app starts without its store, and is told so. */
  async open(): Promise<void> {
    try {
      await this.primary.open?.();
    } catch (error) {
      this.failed(error);
    }
  }

  async close(): Promise<void> {
    await this.local.close();
    if (this.closesPrimary) await this.primary.close();
  }

  async check(checks: readonly Check[]): Promise<StoreDecision[][]> {
    try {
      return await this.ask(() => this.primary.check(checks));
    } catch (error) {
      if (!(error instanceof RateLimitStoreError)) throw error;
      if (checks.some(({ entries }) => entries.some(denies))) throw error;
      return Promise.all(checks.map((check) => this.fallBack(check)));
    }
  }

  async reserve(reservation: ReserveEntry): Promise<StoreDecision> {
    try {
      return await this.ask(() => this.primary.reserve(reservation));
    } catch (error) {
      if (!(error instanceof RateLimitStoreError) || denies(reservation)) throw error;
      if (reservation.limit.onStoreError !== 'local') return allowing(reservation);
      return { ...(await this.local.reserve(reservation)), source: 'fallback' };
    }
  }

  async refund(refunds: readonly Refund[]): Promise<void> {
    const local = refunds.filter(({ source }) => source === 'fallback');
    const rest = refunds.filter(({ source }) => source !== 'fallback');
    if (local.length > 0) await this.local.refund(local);
    if (rest.length === 0) return;
    try {
      await this.ask(() => this.primary.refund(rest));
    } catch (error) {
      const unknown = rest.filter(({ source }) => source === undefined);
      if (!(error instanceof RateLimitStoreError) || unknown.length < rest.length) throw error;
      await this.local.refund(unknown);
    }
  }

  async penalize(charge: Charge): Promise<void> {
    if (charge.source === 'fallback') return this.local.penalize(charge);
    try {
      await this.ask(() => this.primary.penalize(charge));
    } catch (error) {
      if (!(error instanceof RateLimitStoreError)) throw error;
      await this.local.penalize(charge);
    }
  }

  async block(counter: Counter, durationMs: number): Promise<void> {
    await this.local.block(counter, durationMs);
    await this.ask(() => this.primary.block(counter, durationMs));
  }

  renew(lease: HeldLease): Promise<boolean> {
    return lease.source === 'fallback' ? this.local.renew(lease) : this.ask(() => this.primary.renew(lease));
  }

  async reset(counters: readonly Counter[]): Promise<void> {
    await this.local.reset(counters);
    await this.ask(() => this.primary.reset(counters));
  }

  history(counter: Counter): Promise<WindowCount[]> {
    return this.ask(() => this.primary.history(counter));
  }

  private async fallBack({ entries, ...rest }: Check): Promise<StoreDecision[]> {
    const counted = entries.filter(({ limit }) => limit.onStoreError === 'local');
    const [local = []] = counted.length > 0 ? await this.local.check([{ ...rest, entries: counted }]) : [];
    return entries.map((entry) => {
      const decision = local[counted.indexOf(entry)] ?? allowing(entry);
      return { ...decision, source: 'fallback' };
    });
  }

  private async ask<T>(call: () => Promise<T>): Promise<T> {
    // While one check probes a store, the others do not wait for its answer.
    if (this.breaker.state === CircuitState.HalfOpen) throw new RateLimitStoreError(messages.storeBroken());
    try {
      const answer = await this.breaker.execute(call);
      if (this.failing) this.recovered();
      return answer;
    } catch (error) {
      if (error instanceof BrokenCircuitError) throw new RateLimitStoreError(messages.storeBroken(), { cause: error });
      if (error instanceof RateLimitStoreError) this.failed(error);
      throw error;
    }
  }

  private failed(error: unknown): void {
    if (this.failing) return;
    this.failing = true;
    this.report({ state: 'failing', error: error instanceof Error ? error : new Error(String(error)) });
  }

  private recovered(): void {
    this.failing = false;
    this.report({ state: 'recovered' });
  }
}

function denies({ limit }: CheckEntry): boolean {
  return limit.onStoreError === 'deny' && !limit.shadow;
}

/** What lets a request pass without counting it. */
export function allowing({ limit }: CheckEntry): StoreDecision {
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
