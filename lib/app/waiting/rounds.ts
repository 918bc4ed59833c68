import { chargesOf } from '../../storage/stores/store-decision.js';
import { RefusedCall } from './refused-call.js';
import { allDone, goesOn, type TurnAnswer } from './turn.js';
import type { GiveBack, UnitSource } from './unit-source.js';
import type { WaitingCall } from './waiting-call.js';
import { MAX_BATCH, type WaitingLine } from './waiting-line.js';

/**
 * The first and the longest time between polls for units that may be freed at any time, even by another process. The time doubles with each
 * poll.
 */
const FIRST_POLL_MS = 25;
const LAST_POLL_MS = 1000;

/** A call that made its request before it had a queue. */
export interface StartedCall {
  readonly call: WaitingCall;
  /** The response, which may be pending. */
  readonly answer: TurnAnswer;
}

/** The rounds in which a queue requests the units of its calls, and the result of the last one. */
export class Rounds {
  /** True if units may have been freed since the last round. */
  retryNow = false;
  /** The first call that was rejected in the last round. */
  refused: RefusedCall | undefined;
  /** A retry before this time would be rejected again. */
  private retryAt = 0;
  private pollMs = FIRST_POLL_MS;
  /** The number of units per limit that the next calls are likely to get. */
  private likely: readonly number[] = [];

  constructor(
    private readonly line: WaitingLine,
    private readonly source: UnitSource,
    private readonly giveBack: GiveBack,
  ) {}

  /** The time for which a request would be pointless, in milliseconds: `Infinity` until something changes. */
  idleMs(): number {
    const { line, source, retryNow, refused } = this;
    if (!retryNow && refused === undefined && source.room === 0) return Infinity;
    const retryAt = retryNow || refused === undefined ? 0 : this.retryAt;
    return Math.max(retryAt, line.first!.notBefore) - performance.now();
  }

  /**
   * Requests units for the first calls. After a rejection, also for later ones that need fewer units and cannot wait, unless the order has
   * to be kept.
   */
  async next(started?: StartedCall): Promise<void> {
    const { line, source } = this;
    this.retryNow = false;
    this.refused = undefined;
    const { nextNumber } = line;
    const room = source.room;
    const units = room === undefined ? this.likely : [Math.max(this.likely[0] ?? 0, room)];
    const refused = await (started === undefined
      ? this.ask(line.batch(units, source.keepsOrder))
      : this.answered([started.call], [started.answer]));
    if (refused === undefined) {
      // The store reports the length of the queue in case it is too long for some calls.
      if (source.room === 0 && line.mayTimeOut(source.aheadMs)) this.retryNow = true;
      return;
    }
    this.likely = [];
    const { call: first, isEarly, longest } = refused;
    if (!isEarly && !first.isSettled) this.waitBehind(refused);
    const impatient: WaitingCall[] = [];
    for (const { call, number, waitMs } of line.timedOutBy(refused, room !== undefined)) {
      // The rejection may be older than a call that has arrived in the meantime.
      if (number >= nextNumber) this.retryNow = true;
      else if (isEarly || call.asksAtLeast(first) || (source.keepsOrder && call.leftMs === 0)) {
        const retryAfterMs = Math.max(longest.decision.retryAfterMs, Math.ceil(waitMs));
        call.refuse({ ...longest, decision: { ...longest.decision, retryAfterMs } }, waitMs);
      } else if (!source.keepsOrder) impatient.push(call);
    }
    for (let index = 0; index < impatient.length; index += MAX_BATCH) {
      await this.ask(impatient.slice(index, index + MAX_BATCH));
    }
  }

  private waitBehind(refused: RefusedCall): void {
    this.refused = refused;
    this.retryAt = refused.retryAt(this.pollMs);
    if (refused.refusals.some((each) => refused.call.isPolled(each))) {
      this.pollMs = Math.min(this.pollMs * 2, LAST_POLL_MS);
    }
  }

  /** Requests the units of several calls in one round. Returns the first rejection that also concerns other calls. */
  private ask(calls: readonly WaitingCall[]): Promise<RefusedCall | undefined> {
    return this.answered(calls, this.source.ask(calls));
  }

  private async answered(
    calls: readonly WaitingCall[],
    answers: readonly TurnAnswer[],
  ): Promise<RefusedCall | undefined> {
    const { source } = this;
    await allDone(answers);
    let first: RefusedCall | undefined;
    for (const [index, answer] of answers.entries()) {
      const call = calls[index]!;
      if (answer.hasFailed) {
        call.reject(answer.error);
        continue;
      }
      if (goesOn(answer)) {
        if (first?.isOvertakenBy(call) === true && !call.isSettled) {
          // The call stays in the line.
          this.giveBack(chargesOf(answer.entries, answer.decisions));
          continue;
        }
        this.line.delete(call);
        this.likely = source.take(call, answer);
        this.pollMs = FIRST_POLL_MS;
        continue;
      }
      source.refused(answer);
      const refused = new RefusedCall(call, answer);
      call.refuse(refused.longest, refused.leastWaitMs);
      // The rejection shows the length of a queue that has taken units in advance.
      const isOfLine = source.room !== undefined && refused.longest.decision.retryAfterMs < Infinity;
      if (!call.isSettled || isOfLine) first ??= refused;
    }
    return first;
  }
}
