import type { ExecutionContext } from '@nestjs/common';
import type { ResolvedKey } from '../../../engine/limits/identity.js';
import type { Identify } from '../../key-resolvers/key-scheme.js';
import type { Priority } from '../../../engine/limits/arguments.js';
import type { RequestParts } from '../../transports/request-reader.js';
import { type Awaitable, isPromise, mapAll } from '../../../engine/util/awaitable.js';
import type { Rule } from '../rule.js';
import { identityOfKey, identityWithoutKey } from './identity.js';
import { LeveledInput, RequestInput } from './rule-input.js';
import { entryOf, type NotApplying, resolve, type RuleEntry } from './resolve.js';

/** The entries that a request sends to the store: one for each rule that applies and isn't switched off. */
export function requestEntries(
  rules: readonly Rule[],
  context: ExecutionContext,
  parts: RequestParts,
): Awaitable<readonly RuleEntry[]> {
  for (const rule of rules) if (!isFixed(rule)) return resolvedEntries(rules, new RequestInput(context, parts, rules));
  return fixedEntries(rules, context, parts);
}

function resolvedEntries(rules: readonly Rule[], request: RequestInput): Awaitable<readonly RuleEntry[]> {
  const levels = rules.some((rule) => rule.isNested) ? new LeveledInput(rules, request) : request;
  const found = mapAll(rules, (rule) => resolve(rule, request, levels));
  return isPromise(found)
    ? found.then((resolved) => resolved.map(asItIsNow).filter(isChecked))
    : found.filter(isChecked);
}

/** While functions ran, limits may have been replaced. All limits of a check must be from the same moment. */
function asItIsNow(entry: RuleEntry | NotApplying): RuleEntry | NotApplying {
  if (typeof entry === 'string') return entry;
  const limit = entry.rule.limitFor(entry.identity).meet(entry.limit.metBy);
  return limit === entry.limit ? entry : { ...entry, limit };
}

function isChecked(entry: RuleEntry | NotApplying | undefined): entry is RuleEntry {
  return typeof entry === 'object' && !entry.limit.off;
}

/**
 * Returns true if a rule calls no function of the app: it always applies, has a fixed cost, and its key depends only on the request.
 */
function isFixed(rule: Rule): boolean {
  const { options, key, cost, priority, trait } = rule.settings;
  if (options.skip !== undefined || trait !== undefined) return false;
  if (key.isPure !== true || rule.isNested) return false;
  return typeof cost === 'number' && typeof priority !== 'function';
}

/** The entries of fixed rules, created synchronously. If several of them share a key, it is resolved once. */
function fixedEntries(rules: readonly Rule[], context: ExecutionContext, parts: RequestParts): readonly RuleEntry[] {
  let identify: Identify | undefined;
  let key: ResolvedKey;
  let areAllChecked = true;
  const entries = rules.map((rule) => {
    const { settings } = rule;
    // Fixed rules with equal keys share this function.
    if (settings.key.identify !== identify) {
      ({ identify } = settings.key);
      // Never a promise: only functions of the app return promises.
      key = identify(context, parts) as ResolvedKey;
    }
    const identity = identityOfKey(rule, key) ?? identityWithoutKey(rule, settings.key, context, parts);
    const limit = identity === undefined ? undefined : rule.limitFor(identity);
    if (limit === undefined || limit.off) {
      areAllChecked = false;
      return undefined;
    }
    return entryOf(rule, limit, identity!, settings.cost as number, settings.priority as Priority | undefined);
  });
  return areAllChecked ? (entries as RuleEntry[]) : entries.filter(isChecked);
}
