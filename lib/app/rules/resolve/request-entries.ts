import type { ExecutionContext } from '@nestjs/common';
import type { ResolvedKey } from '../../../engine/limits/limit-key.js';
import type { Identify } from '../../key-resolvers/key-scheme.js';
import type { Priority } from '../../../engine/limits/priority.js';
import type { RequestParts } from '../../transports/request-reader.js';
import { type Awaitable, isPromise, mapAll } from '../../../engine/util/awaitable.js';
import type { Rule } from '../rule.js';
import { identityOfKey, identityWithoutKey } from './identity.js';
import { LeveledInput } from './leveled-input.js';
import { entryOf, type NotApplying, resolve, type RuleEntry } from './resolve.js';
import { RequestInput } from './rule-input.js';

/** What rules ask of the store for a request: an entry for each that applies to it and is not switched off. */
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

/** While functions ran, other limits may have come into force: all limits of a check must be of the same time. */
function asItIsNow(entry: RuleEntry | NotApplying): RuleEntry | NotApplying {
  if (typeof entry === 'string') return entry;
  const limit = entry.rule.limitFor(entry.identity).meet(entry.limit.metBy);
  return limit === entry.limit ? entry : { ...entry, limit };
}

function isChecked(entry: RuleEntry | NotApplying | undefined): entry is RuleEntry {
  return typeof entry === 'object' && !entry.limit.off;
}

/**
 * Whether a rule calls none of the user's functions: it always applies, costs the same, and its key depends only on the request.
 */
function isFixed(rule: Rule): boolean {
  const { skip, key, cost, priority, trait } = rule.settings;
  if (skip !== undefined || trait !== undefined) return false;
  if (key.isPure !== true || rule.isNested) return false;
  return typeof cost === 'number' && typeof priority !== 'function';
}

/** The entries of fixed rules, which are made without waiting: a key that several of them share is resolved once. */
function fixedEntries(rules: readonly Rule[], context: ExecutionContext, parts: RequestParts): readonly RuleEntry[] {
  let identify: Identify | undefined;
  let key: ResolvedKey;
  let areAllChecked = true;
  const entries = rules.map((rule) => {
    if (rule.identify !== identify) {
      ({ identify } = rule);
      // Not a promise: only the user's functions return those.
      key = identify(context, parts) as ResolvedKey;
    }
    const { settings } = rule;
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
