import type { LimitDefinition } from '../config/limit-definition.js';
import { RateLimitArgumentError } from '../errors/errors.js';
import { messages } from '../errors/messages.js';
import { assertCost, assertKey } from '../limits/arguments.js';
import type { ConsumeOptions } from '../limits/consume-options.js';
import { assertPriority } from '../limits/priority.js';
import { type CheckEntry, counterId } from '../limits/counter.js';
import type { LimitRegistry } from '../rules/limit-registry.js';
import { Limiter } from './limiter.js';

const DECLARATIONS = {
  check: { location: 'LimiterService.check', namespace: '' },
  reserve: { location: 'LimiterService.reserve', namespace: '' },
};
type Call = keyof typeof DECLARATIONS;

/** The most limits of one check. */
const MAX_LIMITS = 1000;

/** The entries of so few are compared with each other; those of more by their counters' ids. */
const FEW_LIMITS = 8;

/** One limit of a check made from code. */
export interface LimitCheck extends ConsumeOptions {
  /** The limit: its definition, the name of a defined one, or a `Limiter`. */
  limit: LimitDefinition | string | Limiter;
  /** The key of the counter, such as `user:42`: any string that is not empty. */
  key: string;
}

/** Reads what a check or a reservation asks of each limit. Throws `RateLimitArgumentError` or `RateLimitConfigError`. */
export function entriesOf(checks: readonly LimitCheck[], registry: LimitRegistry, call: Call = 'check'): CheckEntry[] {
  if (!Array.isArray(checks)) throw new RateLimitArgumentError(messages.notChecks(call, checks));
  if (checks.length === 0) throw new RateLimitArgumentError(messages.emptyCheck(call));
  if (checks.length > MAX_LIMITS)
    throw new RateLimitArgumentError(messages.tooManyLimits(call, checks.length, MAX_LIMITS));
  const entries = (checks as readonly LimitCheck[]).map((check) => entryOf(check, registry, call));
  const twice = repeated(entries);
  if (twice !== undefined) {
    throw new RateLimitArgumentError(messages.sameKeyTwice(twice.limit.name, twice.identity));
  }
  return entries;
}

/** Refuses limits whose units are leased, which are settled by no number. Throws `RateLimitArgumentError`. */
export function refuseHeldEntries(entries: readonly CheckEntry[]): void {
  for (const { limit } of entries) {
    if (limit.algorithm.holding === undefined) continue;
    throw new RateLimitArgumentError(messages.onlyHeld(limit.name, limit.algorithm.name, 'reserved'));
  }
}

function entryOf(check: LimitCheck, registry: LimitRegistry, call: Call): CheckEntry {
  if (typeof check !== 'object' || check === null) throw new RateLimitArgumentError(messages.notChecks(call, check));
  const { limit: given, key, cost, priority } = check;
  const limiter = given instanceof Limiter ? given : undefined;
  const rule = limiter?.rule ?? registry.rule(given as LimitDefinition | string, DECLARATIONS[call]);
  const units = cost === undefined ? rule.fixedCost : cost;
  assertKey(key);
  assertCost(units);
  if (priority !== undefined) assertPriority(priority);
  const rank = priority ?? rule.fixedPriority;
  const limit = rule.limitForCall(key, check).forPriority(rank);
  return { limit, identity: key, cost: units, priority: rank };
}

/** The first entry whose counter one before it has, too. */
function repeated(entries: readonly CheckEntry[]): CheckEntry | undefined {
  if (entries.length > FEW_LIMITS) {
    const seen = new Set<string>();
    return entries.find(({ limit, identity }) => seen.size === seen.add(counterId(limit, identity)).size);
  }
  for (let i = 1; i < entries.length; i++) {
    const { limit, identity } = entries[i]!;
    for (let j = 0; j < i; j++) {
      const before = entries[j]!;
      if (before.identity === identity && before.limit.id === limit.id) return entries[i];
    }
  }
  return undefined;
}
