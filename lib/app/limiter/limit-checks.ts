import type { LimitDefinition } from '../config/limit-definition.js';
import { argumentError, configError, RateLimitArgumentError } from '../../engine/errors/errors.js';
import { askMessages, upToMessages, withinMessages } from '../../engine/errors/messages/calls.js';
import { messages } from '../../engine/errors/messages/general.js';
import { versionsOf } from '../../engine/limits/limit-feature.js';
import { assertCost, assertKey, assertPriority, isCost } from '../../engine/limits/arguments.js';
import {
  CONSUME_OPTIONS,
  type ConsumeOptions,
  readAsked,
  readUpTo,
  refuseUnknownMembers,
  UP_TO_OPTIONS,
} from '../../engine/limits/consume-options.js';
import { type CheckEntry, counterId } from '../../engine/limits/counter.js';
import { shownIdentity } from '../../engine/limits/hierarchy.js';
import { checkValue } from '../../engine/options/check-options.js';
import { orFunction, whole } from '../../engine/options/kinds.js';
import type { OptionKind } from '../../engine/options/option-row.js';
import type { LimitRegistry } from '../rules/limit-registry.js';
import { refuseTwice } from '../rules/listed-rules.js';
import { callEntry, type LevelsCheck, levelsOf, mergedEntries } from '../rules/resolve/call-entries.js';
import type { Rule } from '../rules/rule.js';
import { MAX_WORK, workOf } from '../../engine/limits/compiled-limit.js';
import type { Check } from '../../storage/stores/store.js';
import { unsupportedCall } from './called-limit.js';
import { Limiter } from './limiter.js';
import { refuseHeldUnits } from './caller-answer.js';

const DECLARATIONS = {
  check: { location: 'LimiterService.check', namespace: '', inCall: true },
  reserve: { location: 'LimiterService.reserve', namespace: '', inCall: true },
};
type Call = keyof typeof DECLARATIONS;

const MAX_LIMITS = 1000;

/** Up to this number of entries, duplicates are found by comparing them with each other; beyond it, by the ids of their counters. */
const FEW_LIMITS = 16;

/**
 * One limit of a check from code. With `upTo`, the same number of units is taken from all limits of the check: the smallest number that any
 * of them has available.
 */
export interface LimitCheck extends ConsumeOptions {
  /** The limit: its definition, the name of a defined one, or a `Limiter`. */
  limit: LimitDefinition | string | Limiter;
  /** The key of the counter, such as `user:42`: any non-empty string. */
  key: string;
}

const RESERVED: readonly (keyof LimitCheck)[] = ['limit', 'key', ...CONSUME_OPTIONS];
const MEMBERS = { check: [...RESERVED, ...UP_TO_OPTIONS], reserve: RESERVED };

/** Reads a check, with or without `upTo`. Throws `RateLimitArgumentError` or `RateLimitConfigError`. */
export function checkOf(checks: readonly LimitCheck[], registry: LimitRegistry): Pick<Check, 'entries' | 'upTo'> {
  if (!takesMost(checks)) return { entries: entriesOf(checks, registry) };
  const mosts = checks.map((check) => readUpTo(check));
  const without = mosts.indexOf(undefined);
  if (without >= 0) {
    throw unsupportedCall(upToMessages.notOfAll(ruleOf(checks[without]!, registry, 'check').name));
  }
  const cost = Math.min(...(mosts as readonly number[]));
  const entries = entriesOf(
    checks.map(({ upTo: _, ...check }) => ({ ...check, cost })),
    registry,
  );
  refuseHeldUnits(entries);
  const shared = entries.find((entry) => entry.cost !== cost);
  if (shared !== undefined) throw unsupportedCall(upToMessages.shared(shared.limit.name));
  return { entries, upTo: true };
}

/** Returns true if any limit of a check has `upTo`. Invalid checks are reported later. */
function takesMost(checks: readonly (LimitCheck | undefined | null)[]): checks is readonly LimitCheck[] {
  if (!Array.isArray(checks)) return false;
  for (const check of checks as readonly (LimitCheck | undefined | null)[]) if (check?.upTo !== undefined) return true;
  return false;
}

/** Reads the entries of a check or a reservation. Throws `RateLimitArgumentError` or `RateLimitConfigError`. */
export function entriesOf(checks: readonly LimitCheck[], registry: LimitRegistry, call: Call = 'check'): CheckEntry[] {
  if (!Array.isArray(checks)) throw new RateLimitArgumentError(messages.notChecks(call, checks));
  if (checks.length === 0) throw new RateLimitArgumentError(messages.emptyCheck(call));
  refuseTooMany(checks, call);
  let isNested = false;
  const entries = (checks as readonly LimitCheck[]).map((check) => {
    const rule = ruleOf(check, registry, call);
    isNested ||= rule.isNested;
    return entryOf(check, rule, call);
  });
  const twice = repeated(entries);
  if (twice !== undefined) {
    throw argumentError('SLUICE_DUPLICATE_LIMIT', messages.sameKeyTwice(twice.limit.name, shownIdentity(twice)));
  }
  if (!isNested) return bounded(entries, call);
  const all = mergedEntries(checks.map((check) => levelCheck(check, ruleOf(check, registry, call))));
  refuseTooMany(all, call);
  return bounded(all, call);
}

function refuseTooMany({ length }: readonly unknown[], call: Call): void {
  if (length <= MAX_LIMITS) return;
  throw argumentError('SLUICE_TOO_MANY_LIMITS', messages.tooManyLimits(call, length, MAX_LIMITS));
}

/** Throws for a check that would keep the server busy for too long, since it is decided in one call. */
function bounded(entries: CheckEntry[], call: Call): CheckEntry[] {
  if (entries.length <= FEW_LIMITS) return entries;
  let work = 0;
  for (const { limit } of entries) work += workOf(limit);
  if (work <= MAX_WORK) return entries;
  throw argumentError('SLUICE_TOO_MANY_LIMITS', messages.tooMuchWork(call, entries.length, work, MAX_WORK));
}

function ruleOf(check: LimitCheck, registry: LimitRegistry, call: Call): Rule {
  if (typeof check !== 'object' || check === null) throw new RateLimitArgumentError(messages.notChecks(call, check));
  const { limit } = check;
  return limit instanceof Limiter ? limit.rule : registry.rule(limit, DECLARATIONS[call]);
}

/** The entry for the limit itself. */
function entryOf(check: LimitCheck, rule: Rule, call: Call): CheckEntry {
  const { key, cost, priority, within, upTo } = check;
  if (upTo !== undefined) throw unsupportedCall(upToMessages.notReserved);
  refuseUnknownMembers(check, MEMBERS[call]);
  const units = cost === undefined ? rule.fixedCost : cost;
  assertKey(key);
  assertCost(units);
  if (priority !== undefined) assertPriority(priority);
  const identity = rule.isNested || within !== undefined ? levelsOf(rule, key, check)[0]!.identity : key;
  return callEntry(rule, identity, units, check);
}

function levelCheck(check: LimitCheck, rule: Rule): LevelsCheck {
  const asked = readAsked(check, rule);
  return { levels: levelsOf(rule, check.key, asked), asked };
}

/** The first entry with the same counter as an earlier one. */
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

/** The key and the cost for limits: the same for all, or from a function that receives the limited subject and the limit's name. */
export interface AskOptions<Limited> {
  /** The location of the options, for messages. */
  readonly location: string;
  readonly key: string | ((limited: Limited, limit: string) => string | Promise<string>);
  readonly cost?: number | ((limited: Limited, limit: string) => number | Promise<number>) | undefined;
}

const KEY: OptionKind = {
  expected: 'a string that is not empty',
  isValid: (value) => typeof value === 'string' && value !== '',
};

/** Checks these options; `fn` describes the functions. Throws `RateLimitConfigError`. */
export function checkAskOptions(location: string, key: unknown, cost: unknown, fn: string): void {
  checkValue(location, 'key', key, orFunction(KEY, fn));
  if (cost !== undefined) checkValue(location, 'cost', cost, orFunction(whole(0), fn));
}

/** The request to one limit. */
export interface LimitAsk<R> {
  readonly rule: R;
  readonly identity: string;
  readonly cost: number;
}

/**
 * Determines the request to a limit; `give` passes the limited subject to the user's functions. `concurrency` limits use their own cost.
 * Rejects with `RateLimitArgumentError`, which names the function that returned an invalid value.
 */
export async function askOf<Limited, R extends Pick<Rule, 'name' | 'limit' | 'fixedCost'>>(
  rule: R,
  { key, cost, location }: AskOptions<Limited>,
  give: () => Limited,
): Promise<LimitAsk<R>> {
  const found: unknown = typeof key === 'function' ? await key(give(), rule.name) : key;
  const identity = foundKey(found, location, rule.name);
  if (rule.limit.algorithm.leases !== undefined) return { rule, identity, cost: rule.fixedCost };
  const units: unknown = typeof cost === 'function' ? await cost(give(), rule.name) : (cost ?? rule.fixedCost);
  return { rule, identity, cost: foundCost(units, location, rule.name) };
}

/** The key that a function of the app has returned. Throws an error that names the function. */
export function foundKey(key: unknown, location: string, limit: string): string {
  if (typeof key === 'string' && key !== '') return key;
  throw argumentError('SLUICE_INVALID_RESULT', askMessages.wrongKeyOf(location, limit, key));
}

/** The units that a function of the app has returned. Throws an error that names the function. */
export function foundCost(cost: unknown, location: string, limit: string): number {
  if (isCost(cost)) return cost;
  throw argumentError('SLUICE_INVALID_RESULT', askMessages.wrongCostOf(location, limit, cost));
}

/** Reads one limit, or a list of them: names or definitions. Throws `RateLimitConfigError`. */
export function listedLimits<L = string | LimitDefinition>(given: unknown, location: string): readonly L[] {
  const list: readonly unknown[] = Array.isArray(given) ? given : [given];
  if (list.length > 0 && list.every(isLimit)) return list as L[];
  throw configError('SLUICE_INVALID_LIMIT', askMessages.noLimits(location, given));
}

/**
 * Throws `RateLimitConfigError` for a limit that is listed twice, has versions per request, or has a parent: nothing would determine the
 * version or the other keys.
 */
export function refuseWrongList(rules: readonly Pick<Rule, 'name' | 'limit'>[], location: string): void {
  for (const { limit } of rules) {
    for (const versions of versionsOf(limit)) {
      if (versions.notListed !== undefined) throw configError('SLUICE_UNSUPPORTED_LIMIT', versions.notListed(location));
    }
  }
  const nested = rules.find(({ limit }) => limit.parent !== undefined);
  if (nested !== undefined)
    throw configError('SLUICE_UNSUPPORTED_LIMIT', withinMessages.notHere(location, nested.name));
  refuseTwice(rules, location);
}

export function isLimit(limit: unknown): boolean {
  return typeof limit === 'string' ? limit !== '' : typeof limit === 'object' && limit !== null;
}
