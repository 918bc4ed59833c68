import { Injectable } from '@nestjs/common';
import { type Observable, Subject } from 'rxjs';
import { type DecisionEvent, hashOf, type UnnamedEvent } from './decision-event.js';
import type { DecisionTap } from './decision-tap.js';

/** All decisions of the app, for its subscribers. */
@Injectable()
export class DecisionStream {
  private readonly subject = new Subject<DecisionEvent>();
  readonly events: Observable<DecisionEvent> = this.subject.asObservable();
  /** Counts all decisions, if something needs the counts. */
  tap: DecisionTap | undefined;

  /** Whether there are subscribers. */
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
