import {
  BrokenCircuitError,
  circuitBreaker,
  type CircuitBreakerPolicy,
  CircuitState,
  ConsecutiveBreaker,
  handleWhen,
} from 'cockatiel';
import { RateLimitStoreError } from '../../../engine/errors/errors.js';
import { messages } from '../../../engine/errors/messages/general.js';
import type { Counter } from '../../../engine/limits/counter.js';

/** After this many failures in a row, the node is not asked until a probe succeeds. */
const FAILURES = 5;
/** How long a node that failed is left alone before one check probes it. */
const PROBE_AFTER_MS = 1000;

const SHORTEST_QUIET_MS = 1000;
const LONGEST_QUIET_MS = 60_000;

/** What a circuit reports, once for each change. */
export type CircuitReport = { state: 'failing'; error: Error } | { state: 'recovered' };

/** Stops asking a node that fails repeatedly, probes it with one call, and asks again when it answers. */
export class Circuit {
  /** One of the counters last asked for, with which the node can be probed. */
  counter: Counter | undefined;
  private readonly breaker: CircuitBreakerPolicy;
  private failing = false;
  /** Whether it has been left alone since it failed. */
  private opened = false;
  private failedAt = -Infinity;
  private recoveredAt = -Infinity;
  /** How long it must not fail to count as recovered, unless a probe succeeds. */
  private quietMs = SHORTEST_QUIET_MS;

  constructor(
    /** The node that is asked. */
    private readonly node: string,
    private readonly report: (report: CircuitReport) => void,
    /** The part of the node that it covers, if that can fail alone. */
    private readonly slot?: number,
  ) {
    this.breaker = circuitBreaker(
      handleWhen((error) => this.isOwn(error)),
      { breaker: new ConsecutiveBreaker(FAILURES), halfOpenAfter: PROBE_AFTER_MS },
    );
    this.breaker.onBreak(() => (this.opened = true));
  }

  /** Whether the node is left alone for the moment. */
  get isOpen(): boolean {
    return this.breaker.state !== CircuitState.Closed;
  }

  /** Whether its failure has been reported, but not its recovery: an answer may change that. */
  get isFailing(): boolean {
    return this.failing;
  }

  async run<T>(call: () => Promise<T>): Promise<T> {
    // While one call probes, the others do not wait for its answer.
    if (this.breaker.state === CircuitState.HalfOpen) throw this.broken();
    try {
      const answer = await this.breaker.execute(call);
      this.recovered();
      return answer;
    } catch (error) {
      if (error instanceof BrokenCircuitError) throw this.broken(error);
      if (this.isOwn(error)) this.failed(error as Error);
      throw error;
    }
  }

  /** Notes that the node is not there: any answer shows that it has come. */
  absent(error: Error): void {
    this.failed(error);
    this.opened = true;
  }

  /** Notes a failed call. */
  failed(error: Error): void {
    const now = performance.now();
    this.failedAt = now;
    if (this.failing) return;
    // A node that fails again and again, but not always, is not reported each time.
    const again = now - this.recoveredAt < 10 * this.quietMs;
    this.quietMs = again ? Math.min(2 * this.quietMs, LONGEST_QUIET_MS) : SHORTEST_QUIET_MS;
    this.failing = true;
    this.report({ state: 'failing', error });
  }

  /** Notes an answer, to a call or otherwise. */
  recovered(): void {
    if (!this.failing) return;
    const now = performance.now();
    if (!this.opened && now - this.failedAt < this.quietMs) return;
    this.failing = false;
    this.opened = false;
    this.recoveredAt = now;
    this.report({ state: 'recovered' });
  }

  /** Whether a failure is this node's: not one that names another node, nor one of a slot that is moving. */
  private isOwn(error: unknown): boolean {
    if (!(error instanceof RateLimitStoreError) || error.slot !== this.slot) return false;
    // The node did what it was asked.
    if (error.isUnconfirmed === true) return false;
    return this.slot !== undefined || (error.node ?? this.node) === this.node;
  }

  private broken(cause?: Error): RateLimitStoreError {
    const error = new RateLimitStoreError(messages.storeBroken(), {
      ...(cause && { cause }),
      code: 'SLUICE_CIRCUIT_OPEN',
    });
    error.node = this.node;
    error.slot = this.slot;
    return error;
  }
}
