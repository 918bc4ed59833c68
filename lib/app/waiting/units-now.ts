import type { CheckEntry } from '../../engine/limits/counter.js';
import { chargesOf } from '../../storage/stores/store-decision.js';
import type { Layer } from '../../storage/stores/layers/store-layer.js';
import { DelayedCalls } from './delayed-calls.js';
import { allDone, delayingIndex, delayMsOf, type Turn, TurnAnswer } from './turn.js';
import type { Conversion, GiveBack, SourceListener, UnitSource } from './unit-source.js';
import type { AskWatcher, WaitingCall } from './waiting-call.js';

/**
 * Takes units that are available now: those of all limits of a call, or none. Nothing is taken in advance, so a block or a stricter limit
 * affects all waiting calls.
 */
export class UnitsNow implements UnitSource {
  readonly room = undefined;
  readonly aheadMs = 0;
  readonly keepsOrder = true;
  private readonly delayed: DelayedCalls;

  constructor(
    queue: SourceListener,
    private readonly store: Layer,
    private readonly giveBack: GiveBack,
  ) {
    this.delayed = new DelayedCalls(
      (turn) => this.refund(turn),
      () => queue.onReleased(),
    );
  }

  get size(): number {
    return this.delayed.size;
  }

  get isEmpty(): boolean {
    return this.delayed.isEmpty;
  }

  ask(calls: readonly WaitingCall[]): TurnAnswer[] {
    const watcher = calls.find((call) => call.watcher !== undefined)?.watcher;
    if (watcher === undefined) return calls.map((call) => new TurnAnswer().check(this.store, call.entries));
    const answers = calls.map(() => new TurnAnswer());
    void this.askWatched(calls, answers, watcher);
    return answers;
  }

  private async askWatched(
    calls: readonly WaitingCall[],
    answers: readonly TurnAnswer[],
    watcher: AskWatcher,
  ): Promise<void> {
    const sums = sumsOf(calls);
    await watcher.ask(sums);
    const asked = answers.map((answer, index) => {
      const call = calls[index]!;
      // The call may have left in the meantime.
      if (call.isSettled) answer.decided([]);
      else answer.check(this.store, call.entries);
      return answer;
    });
    await allDone(asked);
    watcher.asked(sums);
  }

  take(call: WaitingCall, turn: Turn): readonly number[] {
    const { entries, decisions } = turn;
    const delayMs = delayMsOf(turn);
    if (delayMs > 0) {
      const index = delayingIndex(turn, delayMs);
      call.postpone({ ...entries[index]!, index, decision: decisions[index]! }, delayMs);
    }
    if (call.isSettled) this.refund(turn);
    // A call that could continue immediately must not overtake those whose timer is late.
    else if (delayMs === 0 && (this.isEmpty || !isQueued(turn))) call.release(turn);
    else this.delayed.add(call, turn);
    return decisions.map(({ remaining }) => remaining);
  }

  refused(): void {
    // The next round only includes the first call.
  }

  takeBack() {
    return { calls: [], refunds: [] };
  }

  convert(): Conversion {
    return 'same';
  }

  close(reason: Error): void {
    this.delayed.close(reason);
  }

  private refund({ entries, decisions }: Turn): void {
    this.giveBack(chargesOf(entries, decisions));
  }
}

/** Returns true if a limit with a queue decided. */
function isQueued({ entries, decisions }: Turn): boolean {
  return entries.some(({ limit }, index) => {
    return limit.algorithm.queue !== undefined && !limit.shadow && decisions[index]!.source !== 'list';
  });
}

/** The sums of the units that calls request, per limit. */
function sumsOf(calls: readonly WaitingCall[]): CheckEntry[] {
  return calls[0]!.entries().map((entry, index) => {
    let cost = 0;
    for (const call of calls) cost += call.costOf(index);
    return { ...entry, cost };
  });
}
