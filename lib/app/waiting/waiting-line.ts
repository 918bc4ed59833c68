import { leastGapMs } from './unit-source.js';
import type { RefusedCall } from './refused-call.js';
import type { WaitingCall } from './waiting-call.js';

/** The maximum number of calls per request. */
export const MAX_BATCH = 500;

/** A call that times out before it can get its units. */
interface LateCall {
  readonly call: WaitingCall;
  /** Its number, in the order in which calls arrive. */
  readonly number: number;
  /** The minimum wait from the rejection on, in milliseconds. */
  readonly waitMs: number;
}

/** Calls without units, in the order of their turns. */
export class WaitingLine implements Iterable<WaitingCall> {
  /** The calls with their numbers, in the order in which they arrive. */
  private numbers = new Map<WaitingCall, number>();
  private count = 0;
  private last: WaitingCall | undefined;
  private isSorted = true;
  /** The sum of the units that they request from the first limit. */
  private units = 0;
  /** No call has an earlier deadline. */
  private earliestDeadline = Infinity;

  get size(): number {
    return this.numbers.size;
  }

  /** The number of the next call. */
  get nextNumber(): number {
    return this.count;
  }

  get first(): WaitingCall | undefined {
    return this[Symbol.iterator]().next().value;
  }

  [Symbol.iterator](): MapIterator<WaitingCall> {
    this.sort();
    return this.numbers.keys();
  }

  add(call: WaitingCall): void {
    if (this.last !== undefined && call.precedes(this.last)) this.isSorted = false;
    this.last = call;
    this.numbers.set(call, this.count++);
    this.units += call.cost;
    this.earliestDeadline = Math.min(this.earliestDeadline, call.deadline);
  }

  delete(call: WaitingCall): void {
    if (!this.numbers.delete(call)) return;
    this.units -= call.cost;
    if (this.size === 0) this.last = undefined;
  }

  /** Sorts once for all calls that arrived out of order. */
  private sort(): void {
    if (this.isSorted) return;
    const sorted = [...this.numbers].sort(([one], [other]) => (one.precedes(other) ? -1 : 1));
    this.numbers = new Map(sorted);
    this.last = sorted.at(-1)?.[0];
    this.isSorted = true;
  }

  rejectAll(reason: Error): void {
    for (const call of this) call.reject(reason);
  }

  /** Rejects calls at the end, so that at most `most` remain. Calls that have waited before stay. */
  rejectBehind(most: number, reason: (call: WaitingCall) => Error): void {
    if (this.size <= most) return;
    let kept = 0;
    for (const call of this) {
      if (kept < most || call.notBefore > 0) kept++;
      else call.reject(reason(call));
    }
  }

  /**
   * The first calls whose units fit into the given number of units per limit, but at least one call. `keepsOrder`: a call that needs fewer
   * units must not overtake a rejected one.
   */
  batch(units: readonly number[], keepsOrder: boolean): WaitingCall[] {
    const left = [...units];
    const fits = (call: WaitingCall): boolean => {
      if (left.length === 0 || (call.notBefore > 0 && call.notBefore > performance.now())) return false;
      for (let i = 0; i < left.length; i++) if (left[i]! < call.costOf(i)) return false;
      return true;
    };
    const calls: WaitingCall[] = [];
    let last: WaitingCall | undefined;
    for (const call of this) {
      if (last !== undefined && (!fits(call) || (keepsOrder && !call.asksAtLeast(last)))) break;
      for (let i = 0; i < left.length; i++) left[i]! -= call.costOf(i);
      last = call;
      if (calls.push(call) === MAX_BATCH) break;
    }
    return calls;
  }

  /** Returns true if calls may time out before their turn, in a queue of taken units that begins `fromMs` from now. */
  mayTimeOut(fromMs: number): boolean {
    const { first } = this;
    if (first === undefined || this.earliestDeadline === Infinity) return false;
    const longest = Math.max(0, fromMs) + leastGapMs(first.entries()[0]!.limit, this.units);
    return this.earliestDeadline - performance.now() < longest;
  }

  /**
   * The calls that time out because one of them was rejected, perhaps requesting units that become available soon. Examines all calls only
   * if that is possible. `isAhead`: each call takes its units in advance, after those of the previous call.
   */
  timedOutBy({ call: refused, refusals, isEarly, leastWaitMs: ownMs }: RefusedCall, isAhead: boolean): LateCall[] {
    const now = performance.now();
    const { limit } = refusals[0]!;
    let longestMs = ownMs;
    if (isAhead) longestMs += leastGapMs(limit, this.units);
    // A longer wait includes the turn in the queue of a limit.
    else if (refusals.some((each) => each.limit.algorithm.queue !== undefined)) longestMs = Infinity;
    const { earliestDeadline } = this;
    const inTime = earliestDeadline === Infinity || (earliestDeadline > now && earliestDeadline - now >= longestMs);
    if (inTime && ownMs < Infinity) return [];
    this.earliestDeadline = Infinity;
    const late: LateCall[] = [];
    // The wait of the rejected call already includes its own units.
    let before = -refused.cost;
    for (const call of this) {
      this.earliestDeadline = Math.min(this.earliestDeadline, call.deadline);
      before += call.cost;
      const lineMs = isAhead ? ownMs + leastGapMs(limit, before) : 0;
      const waitMs = isEarly ? lineMs : Math.max(lineMs, call.leastWaitMs(refusals));
      if (!call.isTooLate(waitMs)) continue;
      late.push({ call, number: this.numbers.get(call)!, waitMs });
      // This call leaves, and those behind it move up.
      before -= call.cost;
    }
    return late;
  }
}
