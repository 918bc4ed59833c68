import type { CompiledLimit } from '../../../engine/limits/compiled-limit.js';
import type { Counter } from '../../../engine/limits/counter.js';
import { decideInTwo } from '../all-or-nothing.js';
import { answerWith } from '../decide.js';
import type { Operation, OperationAnswer, OperationName } from '../operation.js';
import type { Check, CheckAnswer, Store, StoreDecision } from '../store.js';
import { type Layer, layerOf, StoreLayer } from './store-layer.js';

/**
 * Passes limits that all instances share to the inner store, and limits that each instance counts separately to another store.
 */
export class InstanceScopeStore extends StoreLayer {
  private readonly own: Layer;

  constructor(inner: Store, own: Store) {
    super(inner);
    this.own = layerOf(own);
  }

  override decideOne(limit: CompiledLimit, identity: string, cost: number): StoreDecision | undefined {
    return this.layerFor(limit).decideOne(limit, identity, cost);
  }

  override decide(check: Check, answer: CheckAnswer): void {
    const { entries } = check;
    if (entries.every(isOwn)) this.own.decide(check, answer);
    else if (!entries.some(isOwn)) this.inner.decide(check, answer);
    else answerWith(this.decideInParts(check), answer);
  }

  override async operate<N extends OperationName>(operation: Operation<N>): Promise<OperationAnswer<N>> {
    const all: readonly Counter[] = operation.counters;
    const own = all.filter(isOwn);
    const shared = all.filter((counter) => !isOwn(counter));
    const answer = own.length > 0 ? await this.own.operate({ ...operation, counters: own }) : undefined;
    return shared.length > 0 ? super.operate({ ...operation, counters: shared }) : answer;
  }

  override async close(): Promise<void> {
    await Promise.all([this.inner.close(), this.own.close()]);
  }

  /** Decides a check with both kinds of limits. The instance's own are charged first, since that takes no time. */
  private decideInParts(check: Check): Promise<StoreDecision[]> {
    return decideInTwo(check, check.entries.filter(isOwn), this.own, this.inner);
  }

  protected override layerFor(limit: CompiledLimit): Layer {
    return limit.instance ? this.own : this.inner;
  }
}

function isOwn({ limit }: Counter): boolean {
  return limit.instance;
}
