import { lineageId } from '../../engine/limits/counter.js';
import { type Refusal, refusalsOf, type Turn } from './turn.js';
import type { WaitingCall } from './waiting-call.js';

/** A refused call, and the limits that refused it: all calls behind it wait for the same. */
export class RefusedCall {
  /** The refusals, at least one. */
  readonly refusals: readonly Refusal[];
  /** The refusal with the longest wait. */
  readonly longest: Refusal;
  /** When it was refused, in milliseconds of the monotonic clock. */
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

  /** Whether units were refused only because they may not be taken that far ahead of their time yet. */
  get isEarly(): boolean {
    return this.turn.isEarly === true;
  }

  /** The shortest wait of the call, in milliseconds. */
  get leastWaitMs(): number {
    return this.isEarly ? this.longest.decision.retryAfterMs : this.call.leastWaitMs(this.refusals);
  }

  /** True if its time is up before it can have its units. */
  get isTooLate(): boolean {
    return this.call.isTooLate(this.leastWaitMs);
  }

  /** True if a call that got its units in the same round would overtake this one: both wait for the same, and both have time. */
  isOvertakenBy(call: WaitingCall): boolean {
    return !this.call.isSettled && !this.isEarly && !call.isTooLate(call.leastWaitMs(this.refusals));
  }

  /** Whether units of a counter may let it go on. */
  waitsFor(counter: string): boolean {
    return this.refusals.some(({ limit, identity }) => lineageId(limit, identity) === counter);
  }

  /** Whether the limits in force have changed since they refused it. */
  get isOutdated(): boolean {
    return this.call.entries().some(({ limit }, index) => limit !== this.turn.entries[index]!.limit);
  }

  /** Whether a call that comes now goes before it, or is likely to time out. */
  concerns(call: WaitingCall): boolean {
    return call.precedes(this.call) || call.isTooLate(call.leastWaitMs(this.refusals) - (performance.now() - this.at));
  }

  /** When a retry may succeed, in milliseconds of the monotonic clock: units that may be free at any time are polled. */
  retryAt(pollMs: number): number {
    const waits = this.refusals.map((refusal) => {
      const { retryAfterMs } = refusal.decision;
      return this.call.isPolled(refusal) ? Math.min(retryAfterMs, pollMs) : retryAfterMs;
    });
    return this.at + Math.max(...waits);
  }
}
