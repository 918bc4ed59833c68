import { lineageId } from '../../engine/limits/counter.js';
import { type Refusal, refusalsOf, type Turn } from './turn.js';
import type { WaitingCall } from './waiting-call.js';

/** A rejected call, and the limits that rejected it. All calls behind it wait for the same units. */
export class RefusedCall {
  /** The rejections, at least one. */
  readonly refusals: readonly Refusal[];
  /** The rejection with the longest wait. */
  readonly longest: Refusal;
  /** The time of the rejection, in milliseconds of the monotonic clock. */
  private readonly at = performance.now();

  constructor(
    readonly call: WaitingCall,
    private readonly turn: Turn,
  ) {
    this.refusals = refusalsOf(turn);
    this.longest = this.refusals.reduce((one, other) =>
      other.decision.retryAfterMs > one.decision.retryAfterMs ? other : one,
    );
  }

  /** True if the units were only rejected because they may not be taken that far in advance yet. */
  get isEarly(): boolean {
    return this.turn.isEarly === true;
  }

  /** The shortest wait of the call, in milliseconds. */
  get leastWaitMs(): number {
    return this.isEarly ? this.longest.decision.retryAfterMs : this.call.leastWaitMs(this.refusals);
  }

  /** True if the call will time out before it can get its units. */
  get isTooLate(): boolean {
    return this.call.isTooLate(this.leastWaitMs);
  }

  /**
   * Returns true if a call that got its units in the same round would overtake this one: both wait for the same units, and both have time.
   */
  isOvertakenBy(call: WaitingCall): boolean {
    return !this.call.isSettled && !this.isEarly && !call.isTooLate(call.leastWaitMs(this.refusals));
  }

  /** Returns true if freed units of a counter may let the call continue. */
  waitsFor(counter: string): boolean {
    return this.refusals.some(({ limit, identity }) => lineageId(limit, identity) === counter);
  }

  /** True if the current limits differ from those that rejected the call. */
  get isOutdated(): boolean {
    return this.call.entries().some(({ limit }, index) => limit !== this.turn.entries[index]!.limit);
  }

  /** Returns true if a new call goes before this one, or is likely to time out. */
  concerns(call: WaitingCall): boolean {
    return call.precedes(this.call) || call.isTooLate(call.leastWaitMs(this.refusals) - (performance.now() - this.at));
  }

  /** The time at which a retry may succeed, in milliseconds of the monotonic clock. Units that may be freed at any time are polled. */
  retryAt(pollMs: number): number {
    const waits = this.refusals.map((refusal) => {
      const { retryAfterMs } = refusal.decision;
      return this.call.isPolled(refusal) ? Math.min(retryAfterMs, pollMs) : retryAfterMs;
    });
    return this.at + Math.max(...waits);
  }
}
