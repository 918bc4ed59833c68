import { LongTimeout } from '../../engine/util/long-timeout.js';
import { compareTimes, earliestOf, type TimedUnits } from './reserved-units.js';
import { delayingIndex, delayMsOf, type Turn } from './turn.js';
import type { CallHolder, WaitingCall } from './waiting-call.js';

/** The units of all limits of a call. `decision` is that of the limit with the longest delay. */
interface DelayedTurn extends TimedUnits {
  readonly turn: Turn;
}

/** Calls with equal costs at each limit, and their units, the earliest first. */
interface DelayedGroup {
  readonly key: string | WaitingCall;
  readonly calls: Set<WaitingCall>;
  readonly turns: DelayedTurn[];
}

/**
 * Calls whose units the queue of a limit delays. Among calls with equal costs, the first one uses the first units, even if another call
 * took them. If a call gives up, those behind it move up, and the last units are refunded.
 */
export class DelayedCalls implements CallHolder {
  /** By costs. A call without enough time for its turn among those of equal costs has its own group. */
  private readonly groups = new Map<string | WaitingCall, DelayedGroup>();
  private readonly groupOf = new Map<WaitingCall, DelayedGroup>();
  private timeout: LongTimeout | undefined;

  constructor(
    private readonly refund: (turn: Turn) => void,
    /** Called when calls have left. */
    private readonly onReleased: () => void,
  ) {}

  get isEmpty(): boolean {
    return this.size === 0;
  }

  get size(): number {
    return this.groupOf.size;
  }

  /** Adds a call whose units can be used later, or after those of other calls. */
  add(call: WaitingCall, turn: Turn): void {
    const now = performance.now();
    const costs = turn.entries.map(({ cost }) => cost).join();
    const units = timed(turn, now);
    const last = this.groups.get(costs)?.turns.at(-1)?.usableAt ?? 0;
    const key = last - now <= Math.max(call.leftMs, units.usableAt - now) ? costs : call;
    let group = this.groups.get(key);
    if (group === undefined) this.groups.set(key, (group = { key, calls: new Set(), turns: [] }));
    const index = group.turns.findLastIndex((each) => compareTimes(each, units) <= 0) + 1;
    group.turns.splice(index, 0, units);
    group.calls.add(call);
    this.groupOf.set(call, group);
    call.suspendTimeout();
    call.holder = this;
    this.start();
  }

  onLeft(call: WaitingCall): void {
    const { turns } = this.remove(call);
    const { turn } = turns.pop()!;
    this.start();
    this.onReleased();
    this.refund(turn);
  }

  /** Rejects all waiting calls. */
  close(reason: Error): void {
    for (const call of this.groupOf.keys()) call.reject(reason);
  }

  /** Releases the calls whose units can be used now. */
  private release(): void {
    const now = performance.now();
    const released: { call: WaitingCall; turn: Turn }[] = [];
    for (let group = this.earliest(); group !== undefined && group.turns[0]!.usableAt <= now; group = this.earliest()) {
      const [call] = group.calls;
      released.push({ call: call!, turn: group.turns.shift()!.turn });
      this.remove(call!);
    }
    this.start();
    if (released.length > 0) this.onReleased();
    for (const { call, turn } of released) call.release(turn);
  }

  /** Sets the timeout for the earliest units. */
  private start(): void {
    this.timeout?.clear();
    const next = this.earliest()?.turns[0]!.usableAt;
    if (next === undefined) return;
    this.timeout = new LongTimeout(Math.max(0, next - performance.now()), () => this.release());
  }

  private earliest(): DelayedGroup | undefined {
    return earliestOf(this.groups.values(), ({ turns }) => turns[0]);
  }

  private remove(call: WaitingCall): DelayedGroup {
    const group = this.groupOf.get(call)!;
    group.calls.delete(call);
    this.groupOf.delete(call);
    if (group.calls.size === 0) this.groups.delete(group.key);
    return group;
  }
}

function timed(turn: Turn, now: number): DelayedTurn {
  const { entries, decisions } = turn;
  const delayMs = delayMsOf(turn);
  const index = delayingIndex(turn, delayMs);
  return { turn, limit: entries[index]!.limit, decision: decisions[index]!, usableAt: now + delayMs };
}
