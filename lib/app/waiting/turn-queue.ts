import { setImmediate as turn } from 'node:timers/promises';
import type { CheckEntry } from '../../engine/limits/counter.js';
import type { ListVerdicts } from '../overrides/lists/lists.js';
import type { Refund } from '../../storage/stores/store.js';
import { LongTimeout } from '../../engine/util/long-timeout.js';
import { Rounds, type StartedCall } from './rounds.js';
import type { TurnAnswer } from './turn.js';
import type { GiveBack, SourceListener, UnitSource } from './unit-source.js';
import type { CallHolder, WaitingCall } from './waiting-call.js';
import type { WaitingCount } from './waiting-count.js';
import { WaitingLine } from './waiting-line.js';

/** An in-process store responds in the same turn of the event loop. This is the maximum number of its calls per turn. */
const CALLS_A_TURN = 20;

/** The context that all queues of a process share. */
export interface TurnQueueContext {
  readonly count: WaitingCount;
  readonly giveBack: GiveBack;
  /** Called when a queue has ended, possibly after the next one for the same counters has started. */
  readonly onEmpty: (queue: TurnQueue) => void;
}

/** Creates the source of the units for a queue's calls. */
export type SourceOf = (queue: SourceListener, entries: () => readonly CheckEntry[]) => UnitSource;

/**
 * The calls of this process that wait for the same counters. They are served in order, with one round of store calls in flight at a time.
 */
export class TurnQueue implements SourceListener, CallHolder {
  private readonly line = new WaitingLine();
  private readonly source: UnitSource;
  private readonly rounds: Rounds;
  private running = false;
  /** Ends the sleep until the next round. */
  private endSleep: (() => void) | undefined;
  private inFlight: Promise<void> | undefined;
  /** True while no units may be requested, because some are being removed from the end of the store's queue. */
  private isSuspended = false;
  /** The call that started the queue, and its response, which may be pending. */
  private started: StartedCall | undefined;

  constructor(
    readonly key: string,
    /** The counters whose units its calls wait for. */
    readonly counters: readonly string[],
    /** Returns what its calls request under the current limits. */
    private readonly entries: () => readonly CheckEntry[],
    source: SourceOf,
    private readonly context: TurnQueueContext,
  ) {
    this.source = source(this, entries);
    this.rounds = new Rounds(this.line, this.source, context.giveBack);
  }

  /** Adds a call that made its request before there was a queue. */
  start(call: WaitingCall, answer: TurnAnswer): void {
    this.add(call);
    this.started = { call, answer };
    if (!this.running) void this.run();
  }

  join(call: WaitingCall): void {
    const { count } = this.context;
    // A call that arrives while the queue sleeps has to wait behind all waiting calls, and always behind those that have units for later.
    const before = this.endSleep === undefined ? this.source.size : this.size;
    if (before >= count.most && call.notBefore === 0) {
      call.reject(count.refusal(call.name));
      return;
    }
    this.add(call);
    // An earlier rejection may be outdated. It leads to a retry, and rejects no call.
    const isAsleep = this.endSleep !== undefined;
    if (this.inFlight === undefined && (isAsleep || !this.rounds.retryNow) && this.concerns(call)) this.wake();
    if (!this.running) void this.run();
  }

  private add(call: WaitingCall): void {
    this.line.add(call);
    call.holder = this;
  }

  onLeft(call: WaitingCall): void {
    this.line.delete(call);
    // The calls behind it may fit now, or continue before its time.
    if (this.rounds.refused?.call === call || call.notBefore > 0) this.wake();
  }

  private get size(): number {
    return this.line.size + this.source.size;
  }

  /** Returns true if a new call is the first one, or is likely to time out. */
  private concerns(call: WaitingCall): boolean {
    const { line, source } = this;
    const { refused } = this.rounds;
    if (refused === undefined) {
      if (source.room === undefined) return line.first === call;
      return call.deadline < Infinity && source.room === 0 && line.mayTimeOut(source.aheadMs);
    }
    return refused.concerns(call);
  }

  /** Retries now, or after the round in flight, if freed units of a counter may be the ones that it waits for. */
  wakeFor(counter: string): void {
    if (this.rounds.refused?.waitsFor(counter) !== false) this.wake();
  }

  private wake(): void {
    this.rounds.retryNow = true;
    this.endSleep?.();
  }

  /** Applies changed limits, unless only those of other keys have changed. */
  onLimitChanged(): void {
    const conversion = this.source.convert();
    if (conversion === 'forgotten') this.restart();
    else if (conversion === 'open') this.giveUnitsBack();
    else if (conversion === 'converted' || this.isRefusedByOther) this.wake();
  }

  /** Retries if a list now decides about its calls: it lets all of them pass, or denies them. */
  onListsChanged(lists: ListVerdicts): void {
    const entries = this.entries();
    if (entries.some(({ limit, identity }) => lists.verdict(limit, identity, undefined) !== undefined)) {
      this.giveUnitsBack();
    }
  }

  /** Refunds all units, because no call waits for future units any more. */
  private giveUnitsBack(): void {
    this.context.giveBack(this.takeBack());
    this.goOn();
  }

  /** After a counter was reset: drops the units that calls have taken from it, and takes them again. */
  restartFor(counter: string): void {
    if (this.source.isEmpty) this.wakeFor(counter);
    else this.restart();
  }

  private restart(): void {
    this.takeBack();
    this.goOn();
  }

  /** Stops requesting units until `resume`. Returns the refunds of the units that calls have. */
  suspend(): readonly Refund[] {
    this.isSuspended = true;
    return this.takeBack();
  }

  resume(): void {
    this.isSuspended = false;
    this.goOn();
  }

  /** Makes the calls that have units wait again. Returns the refunds of these units. */
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

  /** Rejects all calls. Resolves after the round in flight, whose units are refunded. */
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
        await (this.inFlight = this.rounds.next(started));
        this.inFlight = undefined;
      }
      // Requests units for all calls from the same turn of the event loop together.
      await Promise.resolve();
      if (this.line.size === 0) break;
      const ms = this.isSuspended ? Infinity : this.rounds.idleMs();
      if (ms > 0) {
        const { count } = this.context;
        this.line.rejectBehind(count.most - this.source.size, (call) => count.refusal(call.name));
        if (this.line.size > 0) await this.sleep(ms);
        continue;
      }
      // With thousands of waiting calls, the loop yields to the event loop now and then.
      if (++rounds % CALLS_A_TURN === 0) await turn();
      await (this.inFlight = this.rounds.next());
      this.inFlight = undefined;
    }
    this.running = false;
    this.endIfEmpty();
  }

  onReleased(): void {
    if (this.endSleep !== undefined && this.rounds.refused === undefined && this.source.room !== 0) this.endSleep();
    this.endIfEmpty();
  }

  /** True if the first call waits for a response, or because of a limit that has been replaced. */
  private get isRefusedByOther(): boolean {
    return this.line.size > 0 && this.rounds.refused?.isOutdated !== false;
  }

  private endIfEmpty(): void {
    if (!this.running && this.line.size === 0 && this.source.isEmpty) this.context.onEmpty(this);
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
