import { Injectable } from '@nestjs/common';
import { type Observable, Subject } from 'rxjs';
import { type DecisionEvent, hashOf, type UnnamedEvent } from './decision-event.js';
import type { CheckEntry } from '../../engine/limits/counter.js';
import type { Check, StoreDecision } from '../stores/store.js';
import type { DecisionTap } from './decision-tap.js';

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
