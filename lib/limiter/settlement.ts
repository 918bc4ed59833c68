import type { Refund, Store } from '../stores/store.js';

/** Charges or refunds the difference between the units that were taken and the actual ones. */
export async function settle(store: Store, taken: Refund, actual: number): Promise<void> {
  const { limit, ticket } = taken;
  const unused = taken.units - actual;
  const before =
    ticket && actual > 0 ? limit.algorithm.queue?.ticketBefore(limit.parameters, ticket, actual) : undefined;
  if (unused > 0) await store.refund([{ ...taken, units: unused, ticket: before ?? ticket }]);
  if (unused < 0) await store.penalize({ ...taken, units: -unused });
}
