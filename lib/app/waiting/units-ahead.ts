import { MAX_INTERVAL_MS } from '../../engine/options/values.js';
import type { CheckEntry } from '../../engine/limits/counter.js';
import { chargeOf } from '../../storage/stores/store-decision.js';
import type { Layer } from '../../storage/stores/layers/store-layer.js';
import type { Refund, StoreDecision } from '../../storage/stores/store.js';
import { type Conversion, type GiveBack, type SourceListener, unitsAhead, type UnitSource } from './unit-source.js';
import { RefusedCall } from './refused-call.js';
import { ReservedQueue } from './reserved-queue.js';
import type { ReservedUnits } from './reserved-units.js';
import { goesOn, type Turn, TurnAnswer } from './turn.js';
import type { WaitingCall } from './waiting-call.js';
import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';

/** The number of places that the queue of a limit is likely to have. Other processes may have taken some in the meantime. */
class PlacesLeft {
  private last = 0;
  /** In milliseconds of the monotonic clock. */
  private at = 0;

  /** Records a decision of the limit. */
  note({ remaining }: StoreDecision): void {
    this.last = remaining;
    this.at = performance.now();
  }

  /** The current number of places, at least one. Units have left since the last decision. */
  now({ algorithm, parameters }: CompiledLimit): number {
    const passedMs = performance.now() - this.at;
    return Math.max(1, this.last + Math.floor((passedMs * 1000) / algorithm.queue!.spacing(parameters)));
  }
}

/** Takes units of one limit, up to a second in advance. Each call is assigned a time and keeps it. */
export class UnitsAhead implements UnitSource {
  readonly keepsOrder = false;
  private readonly reserved: ReservedQueue;
  /** The remaining places in the queue of a limit, according to its last decision. */
  private readonly places = new PlacesLeft();

  constructor(
    private readonly queue: SourceListener,
    private readonly store: Layer,
    private readonly giveBack: GiveBack,
    /** Returns what a call requests under the current limit. */
    private readonly entries: () => readonly CheckEntry[],
  ) {
    this.reserved = new ReservedQueue(
      (reserved) => giveBack(reserved.map(refund)),
      () => queue.onReleased(),
    );
  }

  get size(): number {
    return this.reserved.size;
  }

  get isEmpty(): boolean {
    return this.reserved.isEmpty;
  }

  /** 0 until half of the units that were taken are used. Never more than the places in the queue of a limit. */
  get room(): number | undefined {
    const { limit } = this.entries()[0]!;
    const ahead = unitsAhead(limit);
    if (ahead === undefined) return undefined;
    const { units } = this.reserved;
    if (units > ahead / 2) return 0;
    return Math.min(ahead - units, limit.algorithm.queue === undefined ? Infinity : this.places.now(limit));
  }

  get aheadMs(): number {
    return Math.max(0, this.reserved.lastUsableAt - performance.now());
  }

  /** Beyond the room, it only takes units that can be used immediately. */
  ask(calls: readonly WaitingCall[]): TurnAnswer[] {
    const { room, aheadMs, store } = this;
    let units = 0;
    const answers: TurnAnswer[] = [];
    for (const [index, call] of calls.entries()) {
      units += call.cost;
      const longest = Math.min(call.leftMs, MAX_INTERVAL_MS);
      const isWithin = room === undefined || units <= room || (index === 0 && room > 0);
      // Returned units may be available before the reserved ones.
      const ms = isWithin ? longest : index === 0 ? Math.max(0, aheadMs - 1) : 0;
      const answer = new TurnAnswer(ms < longest).reserve(store, call.entries, Math.min(longest, ms));
      answers.push(answer);
      // Time passes until the next request, which could free a place for that call.
      if (asksQueue(answer) && answer.isDone && isStillWaiting(call, answer)) break;
    }
    return answers;
  }

  take(call: WaitingCall, turn: Turn): readonly number[] {
    const { limit } = turn.entries[0]!;
    const decision = turn.decisions[0]!;
    this.places.note(decision);
    const isSame = call.entries()[0]!.limit === limit;
    // Without a queue, and as the first call, it needn't wait for its time.
    const isDue = decision.delayMs === 0 && isSame && limit.algorithm.queue === undefined && this.isEmpty;
    if (limit.shadow || (isDue && !call.isSettled)) call.release(turn);
    else {
      this.reserved.add(call, turn);
      // This runs after all decisions of the round have been processed.
      if (!isSame) queueMicrotask(() => this.queue.onLimitChanged());
    }
    // For a limit with a queue, `remaining` counts places in it.
    return limit.algorithm.queue === undefined ? [decision.remaining] : [];
  }

  refused({ decisions }: Turn): void {
    this.places.note(decisions[0]!);
  }

  takeBack(): { calls: WaitingCall[]; refunds: Refund[] } {
    const { calls, reserved } = this.reserved.drain();
    return { calls, refunds: reserved.map(refund) };
  }

  convert(): Conversion {
    const { reserved } = this;
    if (!reserved.hasOtherLimit) return 'same';
    if (reserved.isForgotten) return 'forgotten';
    if (reserved.isOpen) return 'open';
    const converted = reserved.convert();
    // A refund of 0 units makes the store convert the counter now. From then on, its debt is paid off at the new rate.
    if (converted !== undefined) this.giveBack([{ ...refund(converted), units: 0 }]);
    return 'converted';
  }

  close(reason: Error): void {
    this.reserved.close(reason);
  }
}

function refund({ limit, identity, units, decision }: ReservedUnits): Refund {
  return chargeOf({ limit, identity, cost: units }, decision);
}

/** Returns true if the limit has its own queue, as `leaky-bucket` does. */
function asksQueue({ entries }: Turn): boolean {
  return entries[0]?.limit.algorithm.queue !== undefined;
}

/** Returns true if a call was rejected and has time for another attempt. */
function isStillWaiting(call: WaitingCall, answer: TurnAnswer): boolean {
  return !answer.hasFailed && !goesOn(answer) && !new RefusedCall(call, answer).isTooLate;
}
