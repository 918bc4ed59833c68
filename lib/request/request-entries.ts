import type { ExecutionContext } from '@nestjs/common';
import type { Identify, ResolvedKey } from '../key-resolvers/key-resolver.js';
import type { Rule } from '../rules/rule.js';
import { askedEntry, fixedEntry, isFixed, type RuleEntry } from '../rules/rule-entry.js';
import type { RequestParts } from '../transports/request-reader.js';
import { type Awaitable, isPromise, mapAll } from '../util/awaitable.js';
import { nestedEntries } from './nested-entries.js';

/** What a request asks of the store: one entry of each rule that applies to it. */
export function entriesOf(
  rules: readonly Rule[],
  context: ExecutionContext,
  parts: RequestParts,
): Awaitable<readonly RuleEntry[]> {
  for (const rule of rules) if (!isFixed(rule)) return askedEntries(rules, context, parts);
  return fixedEntries(rules, context, parts);
}

/** The entries of rules that call no function of the user's: a key that several of them have is looked for once. */
function fixedEntries(rules: readonly Rule[], context: ExecutionContext, parts: RequestParts): readonly RuleEntry[] {
  let identify: Identify | undefined;
  let key: ResolvedKey;
  let missing = 0;
  const entries = rules.map((rule) => {
    if (rule.identify !== identify) {
      ({ identify } = rule);
      // No promise: only the user's functions give one.
      key = identify(context, parts) as ResolvedKey;
    }
    const entry = fixedEntry(rule, key, context, parts);
    if (entry === undefined) missing++;
    return entry;
  });
  return missing === 0 ? (entries as RuleEntry[]) : applying(entries);
}

function askedEntries(
  rules: readonly Rule[],
  context: ExecutionContext,
  parts: RequestParts,
): Awaitable<readonly RuleEntry[]> {
  const isNested = rules.some((rule) => rule.isNested);
  const asked = isNested
    ? nestedEntries(rules, context, parts)
    : mapAll(rules, (rule) => askedEntry(rule, context, parts));
  return isPromise(asked) ? asked.then((found) => applying(found.map(asItIsNow))) : applying(asked);
}

/** While functions were asked, other limits may have come into force: all of a check are of one time. */
function asItIsNow(entry: RuleEntry | undefined): RuleEntry | undefined {
  if (entry === undefined) return undefined;
  const limit = entry.rule.limitFor(entry.identity).asMet(entry.limit);
  if (limit === entry.limit) return entry;
  return limit.off ? undefined : { ...entry, limit };
}

function applying(entries: readonly (RuleEntry | undefined)[]): readonly RuleEntry[] {
  return entries.filter((entry) => entry !== undefined);
}
