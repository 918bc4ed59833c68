import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import type { Refund, Store } from '../../storage/stores/store.js';

/** Charges or refunds the difference between the units that were taken and the actual ones. */
export async function settle(store: Store, taken: Refund, actual: number): Promise<void> {
  const unused = taken.units - actual;
  if (unused > 0) await store.refund([lastUnits(taken, unused, actual)]);
  if (unused < 0) await store.penalize({ ...taken, units: -unused });
}

/** The last of the units that were taken, after the `first` ones. */
function lastUnits(taken: Refund, units: number, first: number): Refund {
  const { limit, ticket, candidate } = taken;
  const last = { ...taken, units, ticket: ticketBefore(limit, ticket, first) };
  if (candidate?.ticket === undefined || limit.candidate === undefined) return last;
  return { ...last, candidate: { ...candidate, ticket: ticketBefore(limit.candidate, candidate.ticket, first)! } };
}

/** The ticket of a charge that is reduced by its last `units`. */
export function ticketBefore(limit: CompiledLimit, ticket: number | undefined, units: number): number | undefined {
  if (!ticket || units === 0) return ticket;
  return limit.algorithm.queue?.ticketBefore(limit.parameters, ticket, units) ?? ticket;
}
