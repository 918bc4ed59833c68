import { decideEnforced } from '../../limiter/enforced-entries.js';
import type { WaitingCount } from '../../limiter/waiting-count.js';
import type { CheckEntry } from '../../limits/counter.js';
import { chargesOf } from '../../stores/store-decision.js';
import type { Store, StoreDecision } from '../../stores/store.js';
import { Heap } from '../../util/heap.js';
import { LongTimeout } from '../../util/long-timeout.js';
import { delayOf, isPolled, refusalOf, type TakenTurn, type TurnRefusal, type WaitingCall } from './waiting-call.js';

/** The times between polls for held units, which may be released at any time, also by another process: each is twice the last. */
const FIRST_POLL_MS = 25;
const LAST_POLL_MS = 1000;
/** The most calls that are asked for at once. */
const MAX_BATCH = 100;

/** The last refusal of the first call, and when it is worth while to ask again, in milliseconds of the monotonic clock. */
interface Refused {
  readonly call: WaitingCall;
  readonly refusal: TurnRefusal;
  readonly retryAt: number;
}

/**
 * The calls of this process that wait for the same counters, in their order. Nothing is reserved in advance, so a block or a limit
 * that was tightened meanwhile holds for all who wait. Each call takes the units of all of its limits at once, or none.
 */
export class TurnQueue {
  private readonly calls = new Heap<WaitingCall>((one, other) => one.rank < other.rank);
  /** How many of them still wait to be let through. */
  private size = 0;
  /** Those that were let through, and that a queue of the limit holds still. */
  private readonly held = new Set<WaitingCall>();
  private running = false;
  private retryNow = false;
  private endSleep: (() => void) | undefined;
  private refused: Refused | undefined;
  private pollMs = FIRST_POLL_MS;
  /** How many units of each limit the next calls are likely to get. */
  private likely: readonly number[] = [];
  /** No call has an earlier deadline. */
  private earliestDeadline = Infinity;
  private closedBy: Error | undefined;

  constructor(
    private readonly store: Store,
    private readonly count: WaitingCount,
    private readonly onEmpty: () => void,
  ) {}

  join(call: WaitingCall): void {
    // Who comes while the line sleeps has to wait. A call that is sent again has been let in already.
    if (this.endSleep !== undefined && !this.retryNow && this.size >= this.count.most && call.notBefore === 0) {
      call.reject(this.count.refusal(call.name));
      return;
    }
    const isFirst = this.calls.first === undefined || call.rank < this.calls.first.rank;
    this.calls.add(call);
    this.size++;
    this.earliestDeadline = Math.min(this.earliestDeadline, call.deadline);
    call.onRejected = () => {
      this.size--;
      // Those behind it may fit now.
      this.wake();
    };
    const { refused } = this;
    if (refused !== undefined && (isFirst || call.leftMs < refused.retryAt - performance.now())) this.wake();
    if (!this.running) void this.run();
  }

  /** Asks again now: units may have become free. */
  wake(): void {
    this.retryNow = true;
    this.endSleep?.();
  }

  /** Rejects all calls that wait. */
  close(reason: Error): void {
    this.closedBy = reason;
    for (let call = this.calls.take(); call !== undefined; call = this.calls.take()) call.reject(reason);
    for (const call of this.held) call.reject(reason);
    this.wake();
  }

  private async run(): Promise<void> {
    this.running = true;
    for (;;) {
      // Calls that come in one turn of the event loop are asked for together.
      await Promise.resolve();
      if (this.size === 0) break;
      const from = this.nextAskAt();
      if (from > performance.now()) await this.sleepUntil(from);
      else await this.askForFirst();
    }
    this.calls.clear();
    this.running = false;
    if (this.held.size === 0) this.onEmpty();
  }

  /** When it is worth while to ask for the first call: at once if units may have become free. */
  private nextAskAt(): number {
    while (this.calls.first?.isSettled === true) this.calls.take();
    const retryAt = this.retryNow ? 0 : (this.refused?.retryAt ?? 0);
    return Math.max(retryAt, this.calls.first?.notBefore ?? 0);
  }

  /** Asks for the first calls. What is refused goes on waiting. */
  private async askForFirst(): Promise<void> {
    this.retryNow = false;
    this.refused = undefined;
    const first = this.takeBatch();
    const watcher = first.find((call) => call.watcher !== undefined)?.watcher;
    const sums = watcher === undefined ? [] : sumsOf(first);
    await watcher?.ask(sums);
    const batch = first.filter(({ isSettled }) => !isSettled);
    const answers = await Promise.allSettled(batch.map((call) => this.ask(call.entries)));
    watcher?.asked(sums);
    let refused: Refused | undefined;
    for (const [index, answer] of answers.entries()) {
      const call = batch[index]!;
      if (answer.status === 'rejected') call.reject(answer.reason);
      else {
        const refusal = refusalOf(answer.value);
        if (refusal === undefined) this.letGo(call, answer.value);
        else {
          const waitMs = this.waitOf(answer.value, call.watcher !== undefined);
          if (this.closedBy !== undefined) call.reject(this.closedBy);
          call.refuse(refusal, isPolled(answer.value, call) ? 0 : waitMs);
          if (!call.isSettled) {
            this.calls.add(call);
            refused ??= { call, refusal, retryAt: performance.now() + waitMs };
          }
        }
      }
    }
    if (refused !== undefined) this.goOnWaiting(refused);
  }

  /** The first calls, as many as are likely to be let through; behind one that is refused nobody who asks for less goes first. */
  private takeBatch(): WaitingCall[] {
    const batch: WaitingCall[] = [];
    const left = [...this.likely];
    for (let call = this.calls.first; call !== undefined && batch.length < MAX_BATCH; call = this.calls.first) {
      const last = batch.at(-1);
      if (!call.isSettled && last !== undefined) {
        const next = call;
        if (next.notBefore > performance.now()) break;
        if (left.length === 0 || left.some((units, index) => units < next.costOf(index)) || !next.asksAtLeast(last))
          break;
      }
      this.calls.take();
      if (call.isSettled) continue;
      for (const [index, units] of left.entries()) left[index] = units - call.costOf(index);
      batch.push(call);
    }
    return batch;
  }

  private ask(entries: readonly CheckEntry[]): Promise<TakenTurn> {
    return new Promise((resolve, reject) => {
      const decided = (decisions: StoreDecision[]) => resolve({ entries, decisions });
      decideEnforced(this.store, { entries, refundable: true }, { decided, failed: reject });
    });
  }

  private letGo(call: WaitingCall, turn: TakenTurn): void {
    this.likely = turn.decisions.map(({ remaining }) => remaining);
    this.pollMs = FIRST_POLL_MS;
    if (!call.isSettled) this.size--;
    const delayMs = delayOf(turn);
    if (call.isSettled || delayMs === 0) {
      if (!call.take(turn)) this.giveBack(turn);
      return;
    }
    const timeout = new LongTimeout(delayMs, () => {
      this.forgetHeld(call);
      call.take(turn);
    });
    this.held.add(call);
    call.onRejected = () => {
      timeout.clear();
      this.forgetHeld(call);
      this.giveBack(turn);
    };
    if (this.closedBy !== undefined) call.reject(this.closedBy);
  }

  private forgetHeld(call: WaitingCall): void {
    this.held.delete(call);
    if (this.held.size === 0 && !this.running) this.onEmpty();
  }

  /** The call does not wait any more. If that fails, the units come back by themselves in time. */
  private giveBack({ entries, decisions }: TakenTurn): void {
    this.store.refund(chargesOf(entries, decisions)).then(
      () => this.wake(),
      () => undefined,
    );
  }

  /** All who wait are behind what was refused: those whose time is over before it can pass wait no longer. */
  private goOnWaiting(refused: Refused): void {
    this.refused = refused;
    this.likely = [];
    this.rejectBehind();
    const { call: first, refusal, retryAt } = refused;
    if (first.watcher !== undefined || refusal.limit.algorithm.holding !== undefined) return;
    if (this.earliestDeadline >= retryAt) return;
    const waiting: WaitingCall[] = [];
    for (let call = this.calls.take(); call !== undefined; call = this.calls.take())
      if (!call.isSettled) waiting.push(call);
    this.earliestDeadline = Infinity;
    for (const call of waiting) {
      if (call.asksAtLeast(first)) call.refuse(refusal, retryAt - performance.now());
      if (call.isSettled) continue;
      this.calls.add(call);
      this.earliestDeadline = Math.min(this.earliestDeadline, call.deadline);
    }
  }

  /** Rejects the last calls, so that no more wait than may. */
  private rejectBehind(): void {
    const { most } = this.count;
    if (this.size <= most) return;
    const kept: WaitingCall[] = [];
    for (let call = this.calls.take(); call !== undefined; call = this.calls.take()) {
      if (call.isSettled) continue;
      if (kept.length < most || call.notBefore > 0) kept.push(call);
      else call.reject(this.count.refusal(call.name));
    }
    for (const call of kept) this.calls.add(call);
  }

  /** How long to wait until what was refused may pass: what may be free at any time is looked for now and then. */
  private waitOf({ entries, decisions }: TakenTurn, learns: boolean): number {
    let wait = 0;
    for (const [index, { allowed, retryAfterMs }] of decisions.entries()) {
      const { limit } = entries[index]!;
      if (allowed || limit.shadow) continue;
      const isPolled = (learns || limit.algorithm.holding !== undefined) && retryAfterMs < Infinity;
      wait = Math.max(wait, isPolled ? Math.min(retryAfterMs, this.pollMs) : retryAfterMs);
      if (isPolled) this.pollMs = Math.min(this.pollMs * 2, LAST_POLL_MS);
    }
    return wait;
  }

  private async sleepUntil(time: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timeout = new LongTimeout(time - performance.now(), resolve);
      this.endSleep = () => {
        timeout.clear();
        resolve();
      };
    });
    this.endSleep = undefined;
  }
}

/** What calls ask of their limits together. */
function sumsOf(calls: readonly WaitingCall[]): CheckEntry[] {
  return calls[0]!.entries.map((entry, index) => ({
    ...entry,
    cost: calls.reduce((sum, call) => sum + call.costOf(index), 0),
  }));
}
