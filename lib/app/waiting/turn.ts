import type { CheckEntry, Counter } from '../../engine/limits/counter.js';
import { isRefusal } from '../../engine/limits/decision.js';
import { decideEnforced } from '../../storage/stores/decide.js';
import { openDecision } from '../../storage/stores/store-decision.js';
import type { Layer } from '../../storage/stores/layers/store-layer.js';
import type { CheckAnswer, ReserveEntry, StoreDecision } from '../../storage/stores/store.js';

/** The decisions of limits on a waiting call. It continues if none of them rejects it. */
export interface Turn {
  /** The request to each limit. */
  readonly entries: readonly CheckEntry[];
  /** The decision of each limit. */
  readonly decisions: readonly StoreDecision[];
  /** True if units were only rejected because they may not be taken that far in advance yet. */
  readonly isEarly?: boolean;
}

/** One limit's rejection of a call. */
export interface Refusal extends Counter {
  /** The index of the limit that rejected. */
  readonly index: number;
  readonly decision: StoreDecision;
}

/** Returns true if the call continues. */
export function goesOn({ entries, decisions }: Turn): boolean {
  for (let i = 0; i < decisions.length; i++) if (isRefusal(entries[i]!.limit, decisions[i]!)) return false;
  return true;
}

/** The rejections of a call; empty if it continues. */
export function refusalsOf({ entries, decisions }: Turn): Refusal[] {
  return decisions.flatMap((decision, index) => {
    const { limit, identity } = entries[index]!;
    return isRefusal(limit, decision) ? [{ limit, identity, index, decision }] : [];
  });
}

/** The decisions of limits on one call. With an in-process store they are available immediately. */
export class TurnAnswer implements Turn, CheckAnswer {
  entries: readonly CheckEntry[] = [];
  decisions: readonly StoreDecision[] = [];
  isDone = false;
  hasFailed = false;
  /** The reason of a failure. */
  error: unknown;
  private onDone: (() => void) | undefined;

  constructor(readonly isEarly = false) {}

  /** True if the limits let the call continue without a delay. */
  get goesOnNow(): boolean {
    return this.isDone && !this.hasFailed && goesOn(this) && delayMsOf(this) === 0;
  }

  /** Takes units of one limit that can be used within `maxWaitMs` milliseconds. Never throws. */
  reserve(store: Layer, entries: () => readonly CheckEntry[], maxWaitMs: number): this {
    try {
      this.entries = entries();
      const { limit, identity, cost, priority } = this.entries[0]!;
      const entry: ReserveEntry = { limit, identity, cost, priority, maxWaitMs };
      if (limit.off) this.decided([openDecision(limit)]);
      else store.decide({ entries: [entry], reserving: true }, this);
    } catch (error) {
      this.failed(error);
    }
    return this;
  }

  /** Takes units of all limits immediately, or of none. Never throws. */
  check(store: Layer, entries: () => readonly CheckEntry[]): this {
    try {
      this.entries = entries();
      decideEnforced(store, { entries: this.entries, refundable: true, waits: true }, this);
    } catch (error) {
      this.failed(error);
    }
    return this;
  }

  /** Calls back when it is done. Only call it while it isn't. */
  whenDone(listener: () => void): void {
    const before = this.onDone;
    this.onDone = () => {
      before?.();
      listener();
    };
  }

  decided(decisions: readonly StoreDecision[]): void {
    this.decisions = decisions;
    this.done();
  }

  failed(error: unknown): void {
    this.hasFailed = true;
    this.error = error;
    this.done();
  }

  private done(): void {
    this.isDone = true;
    this.onDone?.();
  }
}

/** The longest delay of the limits that did not reject the call, in milliseconds. */
export function delayMsOf({ entries, decisions }: Turn): number {
  let delayMs = 0;
  for (let i = 0; i < decisions.length; i++) {
    if (!entries[i]!.limit.shadow) delayMs = Math.max(delayMs, decisions[i]!.delayMs);
  }
  return delayMs;
}

/** The index of the limit that causes a delay; 0 if there is none. */
export function delayingIndex({ entries, decisions }: Turn, delayMs: number): number {
  const index = decisions.findIndex((each, i) => each.delayMs === delayMs && !entries[i]!.limit.shadow);
  return Math.max(0, index);
}

/** Waits until limits have decided on several calls; `undefined` if they already have. */
export function allDone(answers: readonly TurnAnswer[]): Promise<void> | undefined {
  let pending = 0;
  for (const { isDone } of answers) if (!isDone) pending++;
  if (pending === 0) return undefined;
  return new Promise((resolve) => {
    const onDone = (): void => {
      if (--pending === 0) resolve();
    };
    for (const answer of answers) if (!answer.isDone) answer.whenDone(onDone);
  });
}
