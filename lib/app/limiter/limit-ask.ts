import { assertCost, assertKey } from '../../engine/limits/arguments.js';
import { RateLimitArgumentError } from '../../engine/errors/errors.js';
import { askMessages } from '../../engine/errors/messages/ask.js';
import type { Rule } from '../rules/rule.js';

/** The key and the cost for limits: the same for all, or by a function of what is limited and of the limit's name. */
export interface AskOptions<Limited> {
  /** Where they were given, for messages. */
  readonly location: string;
  readonly key: string | ((limited: Limited, limit: string) => string | Promise<string>);
  readonly cost?: number | ((limited: Limited, limit: string) => number | Promise<number>) | undefined;
}

/** What is asked of one limit. */
export interface LimitAsk<R> {
  readonly rule: R;
  readonly identity: string;
  readonly cost: number;
}

/**
 * Works out what is asked of a limit; `give` provides what is limited to the user's functions. Limits of `concurrency` use their
 * own cost. Rejects with `RateLimitArgumentError`, which names the function that returned a wrong value.
 */
export async function askOf<Limited, R extends Pick<Rule, 'name' | 'limit' | 'fixedCost'>>(
  rule: R,
  { key, cost, location }: AskOptions<Limited>,
  give: () => Limited,
): Promise<LimitAsk<R>> {
  const identity: unknown = typeof key === 'function' ? await key(give(), rule.name) : key;
  named(() => assertKey(identity), askMessages.wrongKeyOf(location, rule.name, identity));
  if (rule.limit.algorithm.leases !== undefined) return { rule, identity: identity as string, cost: rule.fixedCost };
  const units: unknown = typeof cost === 'function' ? await cost(give(), rule.name) : (cost ?? rule.fixedCost);
  named(() => assertCost(units), askMessages.wrongCostOf(location, rule.name, units));
  return { rule, identity: identity as string, cost: units as number };
}

/** Refuses a value by a message that names its origin. */
function named(check: () => void, message: string): void {
  try {
    check();
  } catch {
    throw new RateLimitArgumentError(message);
  }
}
