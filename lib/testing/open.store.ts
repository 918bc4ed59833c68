import type { WindowCount } from '../algorithms/algorithm.js';
import { uncountedDecision } from '../stores/layers/store-error-policies.js';
import type { Check, ReserveEntry, Store, StoreDecision } from '../stores/store.js';
import type { CheckEntry } from '../limits/counter.js';

/** Allows everything, and counts nothing. */
export class OpenStore implements Store {
  private leases = 0;

  check(checks: readonly Check[]): Promise<StoreDecision[][]> {
    return Promise.resolve(checks.map(({ entries }) => entries.map((entry) => this.allow(entry))));
  }

  reserve(reservation: ReserveEntry): Promise<StoreDecision> {
    return Promise.resolve(this.allow(reservation));
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
