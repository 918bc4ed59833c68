import { Injectable } from '@nestjs/common';
import { type Observable, Subject } from 'rxjs';
import { type DecisionEvent, hashOf, type UnnamedEvent } from './decision-event.js';
import type { DecisionTap } from './decision-tap.js';

/** All decisions of the app, for those who subscribe. */
@Injectable()
export class DecisionStream {
  private readonly subject = new Subject<DecisionEvent>();
  readonly events: Observable<DecisionEvent> = this.subject.asObservable();
  /** Counts all decisions, if somebody wants to know how many there are. */
  tap: DecisionTap | undefined;

  /** Whether anyone listens. */
  get observed(): boolean {
    return this.subject.observed;
  }

  publish(event: UnnamedEvent, identity: string): void {
    this.subject.next({ ...event, identity: hashOf(identity) });
  }

  close(): void {
    this.subject.complete();
  }
}
