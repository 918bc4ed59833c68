import { withDeadline } from '../../redis/deadline.js';
import { answerWith } from '../decide.js';
import type { Operation, OperationAnswer, OperationName } from '../operation.js';
import type { Check, CheckAnswer, Store } from '../store.js';
import { StoreLayer } from './store-layer.js';

/** Fails calls that an app's store doesn't answer in time, so that no request waits longer. */
export class DeadlineStore extends StoreLayer {
  constructor(
    private readonly store: Store,
    private readonly timeoutMs: number,
    /** The class of the library that the store extends, if any. Methods that it doesn't override answer in time by themselves. */
    private readonly extended?: { readonly prototype: Store },
  ) {
    super(store);
  }

  override decide(check: Check, answer: CheckAnswer): void {
    if (this.answersInTime(check.reserving === true ? 'reserve' : 'check')) this.inner.decide(check, answer);
    else answerWith(withDeadline(this.inner.decided(check), this.timeoutMs), answer);
  }

  override operate<N extends OperationName>(operation: Operation<N>): Promise<OperationAnswer<N>> {
    const { name } = operation;
    const answer = super.operate(operation);
    return name !== 'read' && this.answersInTime(name) ? answer : withDeadline(answer, this.timeoutMs);
  }

  private answersInTime(method: Method): boolean {
    return this.extended !== undefined && this.store[method] === this.extended.prototype[method];
  }
}

/** A method of `Store` for checks or operations. */
type Method = 'check' | 'reserve' | Exclude<OperationName, 'read'>;
