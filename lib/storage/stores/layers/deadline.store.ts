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
    private readonly extended?: StoreClass,
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
    return this.answersInTime(name === 'read' ? 'usage' : name) ? answer : withDeadline(answer, this.timeoutMs);
  }

  private answersInTime(method: Method): boolean {
    return this.extended !== undefined && leaves(this.store, method, this.extended);
  }
}

/** The methods of a store for checks and operations. */
const METHODS = [
  'check',
  'reserve',
  'usage',
  'refund',
  'penalize',
  'renew',
  'block',
  'reset',
  'learn',
  'credit',
  'history',
  'blockedFor',
] as const;

type Method = (typeof METHODS)[number];

/** A class of the library's stores. */
interface StoreClass {
  readonly prototype: Store;
}

/** Returns true if a store decides everything by the methods of a class of the library. */
export function leavesAll(store: Store, extended: StoreClass): boolean {
  return METHODS.every((method) => leaves(store, method, extended));
}

/** Returns true if a store has a method of the class that it extends. */
function leaves(store: Store, method: Method, { prototype }: StoreClass): boolean {
  return Reflect.get(store, method) === Reflect.get(prototype, method);
}
