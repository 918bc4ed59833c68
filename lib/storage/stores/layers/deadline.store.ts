import { withDeadline } from '../../redis/deadline.js';
import { answerWith } from '../decide.js';
import type { Operation, OperationAnswer, OperationName } from '../operation.js';
import type { Check, CheckAnswer, Store } from '../store.js';
import { StoreLayer } from './store-layer.js';

/** Fails calls that an app's store doesn't answer in time, so that no request waits longer. */
export class DeadlineStore extends StoreLayer {
  constructor(
    inner: Store,
    private readonly timeoutMs: number,
  ) {
    super(inner);
  }

  override decide(check: Check, answer: CheckAnswer): void {
    answerWith(withDeadline(this.inner.decided(check), this.timeoutMs), answer);
  }

  override operate<N extends OperationName>(operation: Operation<N>): Promise<OperationAnswer<N>> {
    return withDeadline(super.operate(operation), this.timeoutMs);
  }
}
