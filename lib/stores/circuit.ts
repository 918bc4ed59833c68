import {
  BrokenCircuitError,
  circuitBreaker,
  type CircuitBreakerPolicy,
  CircuitState,
  ConsecutiveBreaker,
  handleWhen,
} from 'cockatiel';
import { RateLimitStoreError } from '../errors/errors.js';
import { messages } from '../errors/messages.js';

/** So many failures in a row, and who failed is not asked until a probe succeeds. */
const FAILURES = 5;
/** How long who failed is left alone before it is probed with a check. */
const PROBE_AFTER_MS = 1000;

/** What a circuit tells of itself, once a change. */
export type CircuitReport = { state: 'failing'; error: Error } | { state: 'recovered' };

/** Stops asking who fails repeatedly, probes it with one call, and asks again when it answers. */
export class Circuit {
  private readonly breaker: CircuitBreakerPolicy;
  private failing = false;

  constructor(
    /** Who is asked. */
    private readonly node: string,
    private readonly report: (report: CircuitReport) => void,
  ) {
    this.breaker = circuitBreaker(
      handleWhen((error) => this.isOwn(error)),
      { breaker: new ConsecutiveBreaker(FAILURES), halfOpenAfter: PROBE_AFTER_MS },
    );
  }

  /** Who is asked is left alone for the moment. */
  get isOpen(): boolean {
    return this.breaker.state !== CircuitState.Closed;
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

  /** It failed, in a call or otherwise. */
  failed(error: Error): void {
    if (this.failing) return;
    this.failing = true;
    this.report({ state: 'failing', error });
  }

  /** It answered, in a call or otherwise. */
  recovered(): void {
    if (!this.failing) return;
    this.failing = false;
    this.report({ state: 'recovered' });
  }

  /** A failure that names another node is not this one's. */
  private isOwn(error: unknown): boolean {
    return error instanceof RateLimitStoreError && (error.node ?? this.node) === this.node;
  }

  private broken(cause?: Error): RateLimitStoreError {
    const error = new RateLimitStoreError(messages.storeBroken(), cause && { cause });
    error.node = this.node;
    return error;
  }
}
