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
  /** True if its units may have to be refunded. */
  readonly refundable: boolean;
}

/** The units that one limit has charged a request. */
export interface RequestCharge extends Refund {
  readonly rule: Rule;
  readonly store: Store;
  /** The units charged now. */
  units: number;
  /** True if its actual cost has been reported, or it was refunded. */
  settled: boolean;
  /** True if it has been refunded. */
  returned: boolean;
}

/** Returns the charges of a check. */
export function requestChargesOf({ entries, decisions, store }: StoreCheck): RequestCharge[] {
  return entries.flatMap((entry, index) => {
    const decision = decisions[index]!;
    if (!decision.allowed) return [];
    return { ...chargeOf(entry, decision), rule: entry.rule, settled: false, returned: false, store };
  });
}

/** Refunds the charges of one request, which are all in one store. */
export async function giveBack(charges: readonly RequestCharge[]): Promise<void> {
  const open = charges.filter(({ returned, units }) => !returned && units > 0);
  const [first] = open;
  if (first === undefined) return;
  for (const charge of open) charge.settled = charge.returned = true;
  try {
    // The rate of the limit may have changed.
    await first.store.refund(
      open.map(({ rule, store: _store, ...charge }) => ({ ...charge, limit: rule.limitFor(charge.identity) })),
    );
  } catch (error) {
    // The request is over, and its units expire on their own.
    if (!(error instanceof RateLimitStoreError)) throw error;
  }
}

/** Settles a charge once the actual units are known: surplus units are refunded, missing ones are charged. */
export function settleCharge(charge: RequestCharge, units: number, limit = charge.limit): Promise<void> {
  const { rule: _rule, store, ...charged } = charge;
  charge.settled = true;
  // At most this number of units is refunded if the request does not count in the end.
  charge.units = Math.min(units, 2 * charge.limit.whole.quota);
  return settle(store, { ...charged, limit }, units);
}

/** Adjusts a charge to the units that the request counts in the end. */
export async function weigh(charge: RequestCharge, units: number): Promise<void> {
  try {
    await settleCharge(charge, units, charge.rule.limitFor(charge.identity));
  } catch (error) {
    // The request is over, and its first charge stays unchanged.
    if (!(error instanceof RateLimitStoreError)) throw error;
  }
}
