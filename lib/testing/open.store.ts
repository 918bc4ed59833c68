import type { WindowCount } from '../engine/algorithms/algorithm.js';
import { uncountedDecision } from '../storage/stores/layers/store-error-policies.js';
import { DirectStore, report } from '../storage/stores/decide.js';
import type { Check, CheckAnswer, Store, StoreDecision } from '../storage/stores/store.js';
import type { CheckEntry } from '../engine/limits/counter.js';

/** Allows everything, and counts nothing. */
export class OpenStore extends DirectStore implements Store {
  private leases = 0;

  /** @internal */
  decide({ entries }: Check, answer: CheckAnswer): void {
    report(
      answer,
      entries.map((entry) => this.allow(entry)),
    );
  }

  /** @internal */
  override decidesAtOnce(): boolean {
    return true;
  }

  async refund(): Promise<void> {}

  async penalize(): Promise<void> {}

  async block(): Promise<void> {}

  renew(): Promise<boolean> {
    return Promise.resolve(true);
  }

  async reset(): Promise<void> {}

  history(): Promise<WindowCount[]> {
    return Promise.resolve([]);
  }

  async close(): Promise<void> {}

  private allow(entry: CheckEntry): StoreDecision {
    const decision: StoreDecision = { ...uncountedDecision(entry), source: 'memory' };
    // Every request that is let in gets a lease, as in production.
    if (entry.limit.algorithm.leases !== undefined) decision.ticket = ++this.leases;
    return decision;
  }
}
