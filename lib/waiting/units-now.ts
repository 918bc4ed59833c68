import type { CheckEntry } from '../limits/counter.js';
import { decidedEnforced } from '../stores/enforced-entries.js';
import { chargesOf } from '../stores/store-decision.js';
import type { Store } from '../stores/store.js';
import { LongTimeout } from '../util/long-timeout.js';
import type { Turn } from './turn.js';
import type { Conversion, GiveBack, SourceListener, UnitSource } from './unit-source.js';
import type { WaitingCall } from './waiting-call.js';

/**
 * Takes units that are available now: those of all limits of a call, or none. Nothing is taken in advance, so a block or a
 * tightened limit affects all waiting calls.
 */
export class UnitsNow implements UnitSource {
  readonly room = undefined;
  readonly aheadMs = 0;
  readonly keepsOrder = true;
  /** Calls that the queue of a limit delays. */
  private readonly delayed = new Set<WaitingCall>();

  constructor(
    private readonly queue: SourceListener,
    private readonly store: Store,
    private readonly giveBack: GiveBack,
  ) {}

  get size(): number {
    return this.delayed.size;
  }

  get isEmpty(): boolean {
    return this.size === 0;
  }

  ask(calls: readonly WaitingCall[]): Promise<Turn>[] {
    const watcher = calls.find((call) => call.watcher !== undefined)?.watcher;
    if (watcher === undefined) return calls.map((call) => this.check(call));
    const sums = sumsOf(calls);
    const watched = watcher.ask(sums);
    const turns = calls.map((call) => this.check(call, watched));
    void Promise.allSettled(turns).then(() => watcher.asked(sums));
    return turns;
  }

  take(call: WaitingCall, turn: Turn): readonly number[] {
    const { entries, decisions } = turn;
    const delays = decisions.map(({ delayMs }, index) => (entries[index]!.limit.shadow ? 0 : delayMs));
    const delayMs = Math.max(0, ...delays);
    if (delayMs > 0) {
      const index = delays.indexOf(delayMs);
      call.postpone({ ...entries[index]!, index, decision: decisions[index]! }, delayMs);
    }
    if (call.isSettled) this.refund(turn);
    else if (delayMs === 0) call.release(turn);
    else this.delay(call, turn, delayMs);
    return decisions.map(({ remaining }) => remaining);
  }

  takeBack() {
    return { calls: [], refunds: [] };
  }

  convert(): Conversion {
    return 'same';
  }

  close(reason: Error): void {
    for (const call of this.delayed) call.reject(reason);
  }

  private async check(call: WaitingCall, after?: Promise<void>): Promise<Turn> {
    await after;
    // It may have left meanwhile.
    const entries = call.isSettled ? [] : call.entries();
    const decisions = call.isSettled ? [] : await decidedEnforced(this.store, { entries, refundable: true });
    return { entries, decisions };
  }

  private delay(call: WaitingCall, turn: Turn, ms: number): void {
    const forget = (): void => {
      this.delayed.delete(call);
      this.queue.onReleased();
    };
    const timeout = new LongTimeout(ms, () => {
      forget();
      call.release(turn);
    });
    this.delayed.add(call);
    call.suspendTimeout();
    call.onLeft = () => {
      timeout.clear();
      forget();
      this.refund(turn);
    };
  }

  private refund({ entries, decisions }: Turn): void {
    this.giveBack(chargesOf(entries, decisions));
  }
}

/** The sums of what calls ask of their limits. */
function sumsOf(calls: readonly WaitingCall[]): CheckEntry[] {
  return calls[0]!.entries().map((entry, index) => {
    let cost = 0;
    for (const call of calls) cost += call.costOf(index);
    return { ...entry, cost };
  });
}
