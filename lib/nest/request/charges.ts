import { RateLimitStoreError } from '../../engine/errors/errors.js';
import { settle } from '../../app/limiter/settlement.js';
import type { Rule } from '../../app/rules/rule.js';
import type { RuleEntry } from '../../app/rules/resolve/resolve.js';
import { chargeOf } from '../../storage/stores/store-decision.js';
import type { Refund, Store, StoreDecision } from '../../storage/stores/store.js';

/** One atomic check of a request, with the decision of each entry. */
export interface StoreCheck {
  readonly entries: readonly RuleEntry[];
  readonly decisions: readonly StoreDecision[];
  readonly store: Store;
  /** Whether its units may have to be given back. */
  readonly refundable: boolean;
}

/** What one limit has charged a request. */
export interface RequestCharge extends Refund {
  readonly rule: Rule;
  readonly store: Store;
  /** The units charged now. */
  units: number;
  /** Whether its actual cost has been reported, or it was given back. */
  settled: boolean;
  /** Whether it has been given back. */
  returned: boolean;
}

/** What a check charged. */
export function requestChargesOf({ entries, decisions, store }: StoreCheck): RequestCharge[] {
  return entries.flatMap((entry, index) => {
    const decision = decisions[index]!;
    if (!decision.allowed) return [];
    return { ...chargeOf(entry, decision), rule: entry.rule, settled: false, returned: false, store };
  });
}

/** Gives back the charges of one request, which are all in one store. */
export async function giveBack(charges: readonly RequestCharge[]): Promise<void> {
  const open = charges.filter(({ returned, units }) => !returned && units > 0);
  const [first] = open;
  if (first === undefined) return;
  for (const charge of open) charge.settled = charge.returned = true;
  try {
    // The limit may have another rate by now.
    await first.store.refund(
      open.map(({ rule, store: _store, ...charge }) => ({ ...charge, limit: rule.limitFor(charge.identity) })),
    );
  } catch (error) {
    // The request is over, and its units expire by themselves.
    if (!(error instanceof RateLimitStoreError)) throw error;
  }
}

/** Makes a charge what the request counts in the end: surplus units are given back, and missing ones are charged. */
export async function weigh(charge: RequestCharge, units: number): Promise<void> {
  const { rule, store, ...charged } = charge;
  charge.settled = true;
  // If the request does not count in the end, no more than this is given back.
  charge.units = Math.min(units, 2 * charge.limit.whole.quota);
  try {
    await settle(store, { ...charged, limit: rule.limitFor(charge.identity) }, units);
  } catch (error) {
    // The request is over; what it was charged first stays charged.
    if (!(error instanceof RateLimitStoreError)) throw error;
  }
}
