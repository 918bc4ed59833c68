import { LongTimeout } from '../../engine/util/long-timeout.js';
import { compareUnits, earliestOf, ReservedGroup, type ReservedUnits, spacingMs } from './reserved-units.js';
import type { Turn } from './turn.js';
import type { CallHolder, WaitingCall } from './waiting-call.js';

/** A release that is later than this also delays the following ones, so that they do not catch up all at once. */
const MAX_LATE_MS = 10;

/**
 * Calls with units that are reserved for a future time. A call is released when the time of its units has come. If a call gives up, those
 * behind it move up, and the last units are refunded: as far as this process knows, no other reservation depends on them.
 */
export class ReservedQueue implements CallHolder {
  /** By cost. A call without enough time for its turn among those of equal cost has its own group. */
  private readonly groups = new Map<number | WaitingCall, ReservedGroup>();
  /** Units without a call. */
  private unclaimed: ReservedUnits[] = [];
  private timeout: LongTimeout | undefined;
  /** The time at which the last call was due, or at which it was released if that was much later. */
  private lastRelease = -Infinity;
  private updateScheduled = false;

  constructor(
    /** Refunds units, the last ones first. */
    private readonly refund: (reserved: readonly ReservedUnits[]) => void,
    /** Called when calls have left, or no units are left. */
    private readonly onReleased: () => void,
  ) {}

  /** The calls that have units. */
  get size(): number {
    let size = 0;
    for (const { calls } of this.groups.values()) size += calls.size;
    return size;
  }

  /** The number of units that these calls have. */
  get units(): number {
    let units = 0;
    for (const group of this.groups.values()) units += group.units;
    return units;
  }

  /** The time from which the last of the units can be used, in milliseconds of the monotonic clock. */
  get lastUsableAt(): number {
    let last = -Infinity;
    for (const group of this.groups.values()) last = Math.max(last, group.last?.usableAt ?? -Infinity);
    return last;
  }

  get isEmpty(): boolean {
    return this.groups.size === 0 && this.unclaimed.length === 0;
  }

  /** True if the counter of some units was restarted since they were reserved. */
  get isForgotten(): boolean {
    return [...this.groups.values()].some((group) => group.isForgotten);
  }

  /** True if some units were reserved under a limit that has been replaced. */
  get hasOtherLimit(): boolean {
    return [...this.groups.values()].some((group) => group.hasOtherLimit);
  }

  /** True if the limit of some units no longer rejects, because it is in shadow mode. */
  get isOpen(): boolean {
    return [...this.groups.values()].some(({ first }) => first?.currentLimit().shadow === true);
  }

  /** Adds a call with the units reserved for it; only the units if the call has given up in the meantime. */
  add(call: WaitingCall, { entries, decisions }: Turn): void {
    const { limit, identity } = entries[0]!;
    const decision = decisions[0]!;
    const reservedAt = performance.now();
    const usableAt = reservedAt + decision.delayMs;
    const last = this.groups.get(call.cost)?.last;
    const hasTimeForTurn =
      call.isSettled || last === undefined || last.usableAt - reservedAt <= Math.max(call.leftMs, decision.delayMs);
    const key = hasTimeForTurn ? call.cost : call;
    let group = this.groups.get(key);
    if (group === undefined) this.groups.set(key, (group = new ReservedGroup()));
    const { calls } = group;
    if (!call.isSettled) {
      calls.add(call);
      call.suspendTimeout();
      call.holder = this;
    }
    const { cost: units, entries: current } = call;
    const currentLimit = () => current()[0]!.limit;
    group.add({ identity, units, entries, currentLimit, limit, decision, reservedAt, usableAt });
    this.scheduleUpdate();
  }

  onLeft(call: WaitingCall): void {
    for (const key of [call.cost, call]) this.groups.get(key)?.calls.delete(call);
    this.scheduleUpdate();
  }

  /** Converts all units to the current limits, and rejects calls whose units come too late. Returns converted units. */
  convert(): ReservedUnits | undefined {
    const now = performance.now();
    const converted = [...this.groups.values()].flatMap((group) => group.convert(now) ?? []).at(-1);
    if (converted !== undefined) this.scheduleUpdate();
    return converted;
  }

  /** Removes and returns all calls, in the order of their units, and all units, the last ones first. */
  drain(): { calls: WaitingCall[]; reserved: ReservedUnits[] } {
    const pairs = [...this.groups.values()].flatMap((group) => group.pairs());
    pairs.sort((one, other) => compareUnits(one.units, other.units));
    const reserved = [...pairs.map(({ units }) => units), ...this.unclaimed].toSorted(compareUnits).toReversed();
    this.groups.clear();
    this.unclaimed = [];
    this.timeout?.clear();
    const calls = pairs.flatMap(({ call }) => call ?? []);
    for (const call of calls) call.resumeTimeout();
    return { calls, reserved };
  }

  close(reason: Error): void {
    for (const { calls } of this.groups.values()) for (const call of calls) call.reject(reason);
    this.update();
  }

  /** Schedules one update for all calls that give up in the same turn of the event loop. */
  private scheduleUpdate(): void {
    if (this.updateScheduled) return;
    this.updateScheduled = true;
    queueMicrotask(() => this.update());
  }

  private update(): void {
    this.updateScheduled = false;
    let end: ReservedUnits | undefined;
    for (const [key, group] of this.groups) {
      for (const units of group.takeUnclaimed()) this.unclaimed.push(units);
      const { last } = group;
      if (last === undefined) this.groups.delete(key);
      else if (end === undefined || compareUnits(end, last) < 0) end = last;
    }
    this.refundUnclaimed(end);
    this.releaseDue();
  }

  /**
   * Refunds units without a call. If such units come before `end`, the last claimed units, a refund now would be lost. They are refunded
   * after `end` has been released, unless they have become usable by then.
   */
  private refundUnclaimed(end: ReservedUnits | undefined): void {
    if (this.unclaimed.length === 0) return;
    const now = performance.now();
    const refunded: ReservedUnits[] = [];
    const kept: ReservedUnits[] = [];
    for (const units of this.unclaimed) {
      // A queue can reassign units from its middle.
      const { queue, leases } = units.limit.algorithm;
      const isLost = end !== undefined && compareUnits(end, units) > 0 && queue === undefined && leases === undefined;
      if (!isLost) refunded.push(units);
      else if (units.usableAt > now) kept.push(units);
    }
    this.unclaimed = kept;
    if (refunded.length > 0) this.refund(refunded.toSorted(compareUnits).toReversed());
  }

  /** Releases the calls whose units can be used, in the order of the units, and sets the timeout for the next one. */
  private releaseDue(): void {
    this.timeout?.clear();
    const now = performance.now();
    const due: { call: WaitingCall; turn: Turn }[] = [];
    let next = Infinity;
    for (let group = this.earliest(); group?.first !== undefined; group = this.earliest()) {
      const { first } = group;
      next = Math.max(first.usableAt, this.lastRelease + spacingMs(first));
      if (next > now) break;
      const call = group.releaseFirst();
      if (call === undefined) break;
      due.push({ call, turn: { entries: first.entries, decisions: [first.decision] } });
      if (first.decision.source !== 'list') this.lastRelease = Math.max(next, now - MAX_LATE_MS);
    }
    for (const [key, group] of this.groups) {
      group.compact();
      if (group.first === undefined) this.groups.delete(key);
    }
    for (const { call, turn } of due) call.release(turn);
    if (this.groups.size > 0) this.timeout = new LongTimeout(Math.max(0, next - now), () => this.update());
    else if (!this.isEmpty) this.scheduleUpdate();
    if (due.length > 0 || this.isEmpty) this.onReleased();
  }

  private earliest(): ReservedGroup | undefined {
    return earliestOf(this.groups.values(), ({ first }) => first);
  }
}
