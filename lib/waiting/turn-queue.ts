import { setImmediate as turn } from 'node:timers/promises';
import type { CheckEntry } from '../limits/counter.js';
import type { ListVerdicts } from '../stores/layers/list.store.js';
import type { Refund } from '../stores/store.js';
import { LongTimeout } from '../util/long-timeout.js';
import { RefusedCall } from './refused-call.js';
import { goesOn } from './turn.js';
import { allDone, type TurnAnswer } from './turn-answer.js';
import type { GiveBack, SourceListener, UnitSource } from './unit-source.js';
import type { CallHolder, WaitingCall } from './waiting-call.js';
import type { WaitingCount } from './waiting-count.js';
import { MAX_BATCH, WaitingLine } from './waiting-line.js';

/** The first and the longest time between polls for units that may be freed at any time, also by another process; it doubles. */
const FIRST_POLL_MS = 25;
const LAST_POLL_MS = 1000;
/** A store in process answers in the same turn of the event loop: this many calls are made in one. */
const CALLS_A_TURN = 20;

/** What all queues of a process share. */
export interface TurnQueueContext {
  readonly count: WaitingCount;
  readonly giveBack: GiveBack;
  /** Called when a queue has ended, possibly again after the next one has started. */
  readonly onEmpty: (queue: TurnQueue) => void;
}

/** How a queue gets units for its calls. */
export type SourceOf = (queue: SourceListener, entries: () => readonly CheckEntry[]) => UnitSource;

/** The calls of this process that wait for the same counters: one after another, with one round of calls to the store in flight. */
export class TurnQueue implements SourceListener, CallHolder {
  private readonly line = new WaitingLine();
  private readonly source: UnitSource;
  private running = false;
  /** Whether units may have become free since the last round. */
  private retryNow = false;
  /** Ends the sleep until the next round. */
  private endSleep: (() => void) | undefined;
  private inFlight: Promise<void> | undefined;
  /** The first call that was refused in the last round. */
  private refused: RefusedCall | undefined;
  /** A retry before this time would be refused again. */
  private retryAt = 0;
  private pollMs = FIRST_POLL_MS;
  /** How many units of each limit the next calls are likely to get. */
  private likely: readonly number[] = [];
  /** Whether to ask for nothing, since units are being taken off the end of the store's queue. */
  private isSuspended = false;
  /** The call that started the queue, and the answer that it got or waits for. */
  private started: { readonly call: WaitingCall; readonly answer: TurnAnswer } | undefined;

  constructor(
    readonly key: string,
    /** The counters whose units its calls wait for. */
    readonly counters: readonly string[],
    /** What its calls ask of the limits in force now. */
    private readonly entries: () => readonly CheckEntry[],
    source: SourceOf,
    private readonly context: TurnQueueContext,
  ) {
    this.source = source(this, entries);
  }

  /** Adds a call that has asked before there was a queue. */
  start(call: WaitingCall, answer: TurnAnswer): void {
    this.add(call);
    this.started = { call, answer };
    if (!this.running) void this.run();
  }

  join(call: WaitingCall): void {
    const { count } = this.context;
    // A call that comes while the queue sleeps has to wait, behind all waiting calls.
    if (this.endSleep !== undefined && this.size >= count.most && call.notBefore === 0) {
      call.reject(count.refusal(call.name));
      return;
    }
    this.add(call);
    // An earlier refusal may be outdated: it causes a retry, and rejects nobody.
    const isAsleep = this.endSleep !== undefined;
    if (this.inFlight === undefined && (isAsleep || !this.retryNow) && this.concerns(call)) this.wake();
    if (!this.running) void this.run();
  }

  private add(call: WaitingCall): void {
    this.line.add(call);
    call.holder = this;
  }

  onLeft(call: WaitingCall): void {
    this.line.delete(call);
    // Those behind it may fit now, or go on before its time.
    if (this.refused?.call === call || call.notBefore > 0) this.wake();
  }

  /** The number of its calls that wait. */
  private get size(): number {
    return this.line.size + this.source.size;
  }

  /** Whether a call that comes now is the first one, or is likely to time out. */
  private concerns(call: WaitingCall): boolean {
    const { line, refused, source } = this;
    if (refused === undefined) {
      if (source.room === undefined) return line.first === call;
      return call.deadline < Infinity && source.room === 0 && line.mayTimeOut(source.aheadMs);
    }
    return refused.concerns(call);
  }

  /** Asks again now, or after the round in flight, if units of a counter may be what it waits for: they may have been freed. */
  wakeFor(counter: string): void {
    if (this.refused?.waitsFor(counter) !== false) this.wake();
  }

  private wake(): void {
    this.retryNow = true;
    this.endSleep?.();
  }

  /** Takes over changed limits, unless only those of other keys have changed. */
  onLimitChanged(): void {
    const conversion = this.source.convert();
    if (conversion === 'forgotten') this.restart();
    else if (conversion === 'open') this.giveUnitsBack();
    else if (conversion === 'converted' || this.isRefusedByOther) this.wake();
  }

  /** Asks again if a list decides from now on: it lets all of them go, or refuses them. */
  onListsChanged(lists: ListVerdicts): void {
    const entries = this.entries();
    if (entries.some(({ limit, identity }) => lists.verdict(limit, identity, undefined) !== undefined)) {
      this.giveUnitsBack();
    }
  }

  /** Gives back all units: nobody waits for future units any more. */
  private giveUnitsBack(): void {
    this.context.giveBack(this.takeBack());
    this.goOn();
  }

  /** Forgets what calls have taken from a counter that was reset, and asks for it again. */
  restartFor(counter: string): void {
    if (this.source.isEmpty) this.wakeFor(counter);
    else this.restart();
  }

  private restart(): void {
    this.takeBack();
    this.goOn();
  }

  /** Stops asking until `resume`. Returns the refunds of what calls have. */
  suspend(): readonly Refund[] {
    this.isSuspended = true;
    return this.takeBack();
  }

  resume(): void {
    this.isSuspended = false;
    this.goOn();
  }

  /** Lets the calls that have units wait again. Returns the refunds of these units. */
  private takeBack(): readonly Refund[] {
    const { calls, refunds } = this.source.takeBack();
    for (const call of calls) if (!call.isSettled) this.add(call);
    return refunds;
  }

  private goOn(): void {
    if (this.line.size > 0) this.wake();
    if (this.line.size > 0 && !this.running) void this.run();
    this.endIfEmpty();
  }

  /** Rejects all calls. Resolves after the round in flight, whose units are given back. */
  async close(reason: Error): Promise<void> {
    this.line.rejectAll(reason);
    this.source.close(reason);
    this.wake();
    await this.inFlight;
    this.source.close(reason);
  }

  private async run(): Promise<void> {
    this.running = true;
    let rounds = 0;
    for (;;) {
      const { started } = this;
      if (started !== undefined) {
        this.started = undefined;
        await (this.inFlight = this.askNext(started));
        this.inFlight = undefined;
      }
      // Asks for all calls of one turn of the event loop together.
      await Promise.resolve();
      if (this.line.size === 0) break;
      const ms = this.idleMs();
      if (ms > 0) {
        const { count } = this.context;
        this.line.rejectBehind(count.most - this.source.size, (call) => count.refusal(call.name));
        if (this.line.size > 0) await this.sleep(ms);
        continue;
      }
      // Thousands of waiting calls yield to the event loop now and then.
      if (++rounds % CALLS_A_TURN === 0) await turn();
      await (this.inFlight = this.askNext());
      this.inFlight = undefined;
    }
    this.running = false;
    this.endIfEmpty();
  }

  /** How long asking would be useless, in milliseconds: `Infinity` until it is woken. */
  private idleMs(): number {
    if (this.isSuspended) return Infinity;
    const { retryNow, refused } = this;
    if (!retryNow && refused === undefined && this.source.room === 0) return Infinity;
    const retryAt = retryNow || refused === undefined ? 0 : this.retryAt;
    return Math.max(retryAt, this.line.first!.notBefore) - performance.now();
  }

  onReleased(): void {
    if (this.endSleep !== undefined && this.refused === undefined && this.source.room !== 0) this.endSleep();
    this.endIfEmpty();
  }

  /** Whether the first call waits because of a limit that is no longer in force, or for an answer. */
  private get isRefusedByOther(): boolean {
    return this.line.size > 0 && this.refused?.isOutdated !== false;
  }

  private endIfEmpty(): void {
    if (!this.running && this.line.size === 0 && this.source.isEmpty) this.context.onEmpty(this);
  }

  /** Asks for the first calls; after a refusal, for later ones that ask for less and cannot wait, unless the order is kept. */
  private async askNext(started?: TurnQueue['started']): Promise<void> {
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
      // The store reports how long the queue is, if that is too long for some calls.
      if (source.room === 0 && line.mayTimeOut(source.aheadMs)) this.retryNow = true;
      return;
    }
    this.likely = [];
    const { call: first, isEarly, longest } = refused;
    if (!isEarly && !first.isSettled) this.waitBehind(refused);
    const impatient: WaitingCall[] = [];
    for (const { call, number, waitMs } of line.timedOutBy(refused, room !== undefined)) {
      // The refusal may be older than a call that has come meanwhile.
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

  /** Asks for the units of several calls in one round. Returns the first refusal that matters to others. */
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
        this.line.delete(call);
        this.likely = source.take(call, answer);
        this.pollMs = FIRST_POLL_MS;
        continue;
      }
      const refused = new RefusedCall(call, answer);
      call.refuse(refused.longest, refused.leastWaitMs);
      // The refusal shows how long a queue is that has taken units ahead.
      const isOfLine = source.room !== undefined && refused.longest.decision.retryAfterMs < Infinity;
      if (!call.isSettled || isOfLine) first ??= refused;
    }
    return first;
  }

  private async sleep(ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timeout = new LongTimeout(ms, () => this.wake());
      this.endSleep = () => {
        this.endSleep = undefined;
        timeout.clear();
        resolve();
      };
    });
  }
}
