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

/** After this many failures in a row, the node is skipped until a probe succeeds. */
const FAILURES = 5;
/** How long a failed node is skipped before one check probes it. */
const PROBE_AFTER_MS = 1000;

const SHORTEST_QUIET_MS = 1000;
const LONGEST_QUIET_MS = 60_000;

/** A change of state. Each change is reported once. */
export type CircuitReport = { state: 'failing'; error: Error } | { state: 'recovered' };

/** Skips a node that fails repeatedly, probes it with one call, and uses it again when it answers. */
export class Circuit {
  /** A recently used counter. The node is probed with it. */
  counter: Counter | undefined;
  private readonly breaker: CircuitBreakerPolicy;
  /** True if the failure was reported, but no recovery yet. An answer may change that. */
  isFailing = false;
  /** True if the node has been skipped since it failed. */
  private opened = false;
  private failedAt = -Infinity;
  private recoveredAt = -Infinity;
  /** How long the node must not fail to count as recovered, unless a probe succeeds. */
  private quietMs = SHORTEST_QUIET_MS;

  constructor(
    /** The node that this circuit guards. */
    private readonly node: string,
    private readonly report: (report: CircuitReport) => void,
    /** The part of the node that this circuit guards, if that can fail on its own. */
    private readonly slot?: number,
  ) {
    this.breaker = circuitBreaker(
      handleWhen((error) => this.isOwn(error)),
      { breaker: new ConsecutiveBreaker(FAILURES), halfOpenAfter: PROBE_AFTER_MS },
    );
    this.breaker.onBreak(() => (this.opened = true));
  }

  /** True while the node is skipped. */
  get isOpen(): boolean {
    return this.breaker.state !== CircuitState.Closed;
  }

  async run<T>(call: () => Promise<T>): Promise<T> {
    // The other calls don't wait for the answer to the probe.
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

  /** Records that the node is unavailable. Any answer shows that it is back. */
  absent(error: Error): void {
    this.failed(error);
    this.opened = true;
  }

  /** Records a failed call. */
  failed(error: Error): void {
    const now = performance.now();
    this.failedAt = now;
    if (this.isFailing) return;
    // A node that fails often, but not always, is not reported each time.
    const again = now - this.recoveredAt < 10 * this.quietMs;
    this.quietMs = again ? Math.min(2 * this.quietMs, LONGEST_QUIET_MS) : SHORTEST_QUIET_MS;
    this.isFailing = true;
    this.report({ state: 'failing', error });
  }

  /** Records an answer, to a call or to a probe. */
  recovered(): void {
    if (!this.isFailing) return;
    const now = performance.now();
    if (!this.opened && now - this.failedAt < this.quietMs) return;
    this.isFailing = false;
    this.opened = false;
    this.recoveredAt = now;
    this.report({ state: 'recovered' });
  }

  /** Returns false if the error names another node, or if it comes from a slot that is moving. */
  private isOwn(error: unknown): boolean {
    if (!(error instanceof RateLimitStoreError) || error.slot !== this.slot) return false;
    // The node did its part; only the replicas are late, or the check has too many parts.
    if (error.isUnconfirmed === true || error.isOutOfTime === true) return false;
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

/** A change of state of a slot that fails while it moves. */
export type SlotReport = CircuitReport & { readonly node: string; readonly slot: number };

/** A reshard moves thousands of slots one after another. Of the slots that fail within this time, only one is reported. */
const REPORT_AFTER_MS = 10_000;
/** A slot is forgotten after this long without a call. */
const FORGET_AFTER_MS = 60_000;

/** The circuits of slots that fail while they move. Their nodes are still used for all other slots. */
export class SlotCircuits {
  private readonly circuits = new Map<number, { readonly circuit: Circuit; failedAt: number }>();
  private reportedAt = -Infinity;

  constructor(
    private readonly slotOf: (counter: Counter) => number,
    private readonly report: (report: SlotReport) => void,
  ) {}

  /** True while all slots are healthy. */
  get isEmpty(): boolean {
    if (this.circuits.size > 0) this.forgetOld(performance.now());
    return this.circuits.size === 0;
  }

  /** Wraps a call in the circuits of the counters' slots. */
  guard<T>(counters: readonly Counter[], call: () => Promise<T>): () => Promise<T> {
    let guarded = call;
    for (const slot of new Set(counters.map(this.slotOf))) {
      const known = this.circuits.get(slot);
      if (known === undefined) continue;
      const next = guarded;
      guarded = async () => {
        const answer = await known.circuit.run(next);
        if (!known.circuit.isFailing) this.circuits.delete(slot);
        return answer;
      };
    }
    return guarded;
  }

  /** Records a call that failed because of its slot. */
  failed(error: RateLimitStoreError, node: string, slot: number): void {
    const now = performance.now();
    const known = this.circuits.get(slot);
    if (known !== undefined) {
      known.failedAt = now;
      return;
    }
    this.forgetOld(now);
    const isReported = now - this.reportedAt >= REPORT_AFTER_MS;
    if (isReported) this.reportedAt = now;
    const report = isReported ? (news: CircuitReport) => this.report({ ...news, node, slot }) : () => undefined;
    const circuit = new Circuit(node, report, slot);
    this.circuits.set(slot, { circuit, failedAt: now });
    circuit.failed(error);
  }

  private forgetOld(now: number): void {
    for (const [slot, { failedAt }] of this.circuits) if (now - failedAt > FORGET_AFTER_MS) this.circuits.delete(slot);
  }
}
