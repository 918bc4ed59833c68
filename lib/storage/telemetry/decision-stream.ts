import type { CheckEntry, Counter } from '../../engine/limits/counter.js';
import { report } from '../stores/decide.js';
import type { MemoryStore } from '../stores/memory/memory.store.js';
import { decidedEntries } from '../stores/store-decision.js';
import type { Layer } from '../stores/layers/store-layer.js';
import {
  type AnswerTap,
  type Check,
  type CheckAnswer,
  type HeldLease,
  type StoreDecision,
  UNTIMED,
} from '../stores/store.js';
import { Injectable } from '@nestjs/common';
import { type Observable, Subject } from 'rxjs';
import { type DecisionEvent, hashOf, type UnnamedEvent } from './decision-event.js';

/** Counts decisions while requests wait for them. */
export interface DecisionTap extends AnswerTap {
  /** Returns true if the check that begins now is to be timed. Only a sample is timed. */
  times(): boolean;
  /** A counter was blocked for `durationMs` milliseconds, or unblocked if that is 0. */
  blocked?(counter: Counter, durationMs: number): void;
  /** A lease was renewed. */
  renewed?(lease: HeldLease): void;
}

/** The answer to use in place of `answer`, so that decisions are counted first. It is `answer` itself if that supports counting. */
export function tapped(tap: DecisionTap, check: Check, answer: CheckAnswer): CheckAnswer {
  if (tap.times()) return new TimedAnswer(tap, check, answer);
  if (answer.countBy === undefined || check.upTo === true) return new TappedAnswer(tap, check, answer);
  answer.countBy(tap, check.entries);
  return answer;
}

/** Decides a check in process and counts it. It takes as few steps as possible, since the decision itself takes about as long. */
export function decideTapped(store: MemoryStore, check: Check, answer: CheckAnswer, tap: DecisionTap): void {
  const start = tap.times() ? performance.now() : UNTIMED;
  let decisions: StoreDecision[];
  try {
    decisions = store.decideAtOnce(check);
  } catch (error) {
    tap.failed();
    answer.failed(error);
    return;
  }
  tap.decided(decidedEntries(check, decisions), decisions, start < 0 ? UNTIMED : performance.now() - start);
  report(answer, decisions);
}

/** Like `decideTapped`, for a check of one limit that can be decided synchronously. */
export function decideOneTapped(store: Layer, entry: CheckEntry, tap: DecisionTap): StoreDecision | undefined {
  const start = tap.times() ? performance.now() : UNTIMED;
  const decision = store.decideOne(entry.limit, entry.identity, entry.cost);
  if (decision !== undefined) tap.decided([entry], [decision], start < 0 ? UNTIMED : performance.now() - start);
  return decision;
}

/** Counts an answer, then passes it on. */
class TappedAnswer implements CheckAnswer {
  constructor(
    protected readonly tap: DecisionTap,
    protected readonly check: Check,
    protected readonly answer: CheckAnswer,
  ) {}

  decided(decisions: StoreDecision[]): void {
    this.tap.decided(decidedEntries(this.check, decisions), decisions, UNTIMED);
    this.answer.decided(decisions);
  }

  failed(error: unknown): void {
    this.tap.failed();
    this.answer.failed(error);
  }
}

/** Like `TappedAnswer`, for a check that is timed. */
class TimedAnswer extends TappedAnswer {
  private readonly start = performance.now();

  override decided(decisions: StoreDecision[]): void {
    this.tap.decided(decidedEntries(this.check, decisions), decisions, performance.now() - this.start);
    this.answer.decided(decisions);
  }
}

/** Receives decisions along with their request. Must not throw. */
export interface DecisionListener {
  /** A check was decided. A limit has no event if it was not checked because a list denied the request. */
  decided(
    check: Check,
    entries: readonly CheckEntry[],
    decisions: readonly StoreDecision[],
    events: readonly (UnnamedEvent | undefined)[],
  ): void;
}

/** All decisions of the app, for its subscribers. */
@Injectable()
export class DecisionStream {
  private readonly subject = new Subject<DecisionEvent>();
  readonly events: Observable<DecisionEvent> = this.subject.asObservable();
  /** Counts all decisions if something needs the counts. */
  tap: DecisionTap | undefined;
  /** Receives all decisions if the app has hooks. */
  listener: DecisionListener | undefined;

  /** True if there are subscribers. */
  get observed(): boolean {
    return this.subject.observed;
  }

  /** True if anything receives single decisions. */
  get isUsed(): boolean {
    return this.listener !== undefined || this.subject.observed;
  }

  publish(event: UnnamedEvent, identity: string): void {
    this.subject.next({ ...event, identity: hashOf(identity) });
  }

  close(): void {
    this.subject.complete();
  }
}
