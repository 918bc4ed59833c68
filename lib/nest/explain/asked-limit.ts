import type { BoundKey } from '../../app/key-resolvers/key-resolver.factory.js';
import type { ListedEntry } from '../../app/overrides/lists/list.js';
import { missingKeyOutcome } from '../../app/rules/resolve/identity.js';
import { resolve, type ResolvedOption } from '../../app/rules/resolve/resolve.js';
import { LeveledInput, RequestInput } from '../../app/rules/resolve/rule-input.js';
import type { Rule } from '../../app/rules/rule.js';
import type { Priority } from '../../engine/limits/arguments.js';
import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import { NOBODY } from '../../engine/limits/hierarchy.js';
import type { RequestTrait } from '../../storage/features/feature.js';
import type { LimitStatus } from './explanation.js';
import type { Identities } from './identities.js';
import type { RouteQuery } from './question.js';
import { reasons } from './reasons.js';
import { getOrMake } from '../../engine/util/objects.js';

/** The check that a limit would make for a request. */
export interface AskedLimit {
  readonly status: LimitStatus;
  /** The limit that decides for this identity. */
  readonly limit: CompiledLimit;
  readonly identity?: string | undefined;
  readonly cost?: number | undefined;
  readonly priority?: Priority | undefined;
  /** The outcome for a request without a key. */
  readonly note?: string | undefined;
  readonly reason?: string | undefined;
  /** The list entry that decides instead of the limit. */
  readonly list?: ListedEntry | undefined;
  /** True if the request is rejected because something is missing, before any limit is checked. */
  readonly refuses?: boolean;
}

/** A call from code, which provides all necessary values. */
export function askedFromCode(
  rule: Rule,
  identity: string | undefined,
  cost: number,
  share: string | undefined,
): AskedLimit {
  if (identity === undefined) {
    const { limit } = rule;
    return { status: 'depends on the request', limit, cost, reason: reasons.keysAboveNotGiven(rule) };
  }
  const whole = rule.usualLimit(identity);
  // Only a route determines which of the counters is used.
  if (rule.perRoute && rule.ofAll === undefined) {
    return { status: 'depends on the request', limit: whole, cost, reason: reasons.countsPerRoute() };
  }
  if (whole.off) return { status: 'off', limit: whole, identity, cost, reason: reasons.isOff() };
  const { limit, failure } = ofShare(rule, whole, share);
  if (failure !== undefined) return { status: 'fails', limit, identity, cost, reason: failure };
  return { status: 'asked', limit, identity, cost, priority: rule.fixedPriority };
}

/** The version of the limit for callers with this `share`, if the limit uses shares, or the reason why it is unknown. */
function ofShare(
  rule: Rule,
  limit: CompiledLimit,
  share: string | undefined,
): { limit: CompiledLimit; failure?: string } {
  const { trait } = rule.settings;
  if (trait?.option !== 'share' || share === undefined) return { limit };
  try {
    return { limit: limit.meet(trait.metBy(share, limit)) };
  } catch (error) {
    return { limit, failure: reasons.functionFailed(trait.calls, error) };
  }
}

/** Resolves the checks of limits for a request, as a real check does, but without rejecting the request or warning about it. */
export class ExplainedRequest extends RequestInput {
  private readonly missing = new Map<Rule, Pick<AskedLimit, 'note' | 'reason' | 'refuses'>>();
  private readonly levels = new Map<readonly Rule[], LeveledInput>();

  /** The check of a limit together with all `rules` that are checked in the same call. */
  async asked(rule: Rule, rules: readonly Rule[]): Promise<AskedLimit> {
    const levels = getOrMake(this.levels, rules, () => new LeveledInput(rules, this));
    let option: ResolvedOption = 'skip';
    try {
      const resolved = await resolve(rule, this, levels, (next) => (option = next));
      if (resolved === 'skip') return { status: 'skip', limit: rule.limit, reason: reasons.skips() };
      if (resolved === 'no key') return { status: 'no key', limit: rule.limit, ...this.missing.get(rule) };
      const { limit, identity, cost, priority } = resolved;
      const known = { limit, identity, note: this.missing.get(rule)?.note };
      if (limit.off) return { status: 'off', ...known, reason: reasons.isOff() };
      return { status: 'asked', ...known, cost, priority };
    } catch (error) {
      return { status: 'fails', limit: rule.limit, reason: reasons.functionFailed(option, error) };
    }
  }

  /** Doesn't log the error, since the explanation contains it. */
  protected override reported(_rule: Rule, _option: string, error: unknown): unknown {
    return error;
  }

  protected override withoutKey(rule: Rule, by: BoundKey): string | undefined {
    const { settings } = rule;
    const outcome = missingKeyOutcome(rule, by, this.parts);
    const identity = outcome === 'ip' ? settings.byAddress(this.context, this.parts) : undefined;
    if (identity === undefined) {
      const reason = reasons.lacksKey(outcome, by, this.context.getType<string>());
      this.missing.set(rule, { reason, refuses: outcome.startsWith('refuse') });
    } else if (by === settings.key) {
      this.missing.set(rule, { note: reasons.countsAddress(by.noun) });
    }
    return identity;
  }
}

/** The maximum number of levels that may leave a request out for which all combinations of costs are computed. */
const MOST_OPEN = 8;

/**
 * Resolves the check of a limit for a hypothetical request, together with all `rules` that are checked in the same call. Functions cannot
 * be called.
 */
export function askedOfRoute(
  rule: Rule,
  identities: Identities,
  { cost: given, share }: Pick<RouteQuery, 'cost' | 'share'>,
  rules: readonly Rule[],
): AskedLimit {
  const { key, options, priority, trait } = rule.settings;
  const { identity: own, note } = identities.of(rule) ?? {};
  const isKnown = [rule, ...rule.ancestors].every((level) => identities.of(level) !== undefined);
  const identity = isKnown ? rule.identityAmong((level) => identities.of(level)?.identity) : undefined;
  const whole = identity === undefined ? rule.limit : rule.limitFor(identity);
  const { limit, failure } = ofShare(rule, whole.meet(rule.usual), share);
  const cost = costOfRoute(rule, identities, given, rules);
  const known = { limit, identity, note, cost, priority: rule.fixedPriority };
  if (limit.off) return { status: 'off', ...known, reason: reasons.isOff() };
  if (failure !== undefined) return { status: 'fails', ...known, reason: failure };
  const costUnknown = rule.hasCost ? reasons.isFunction('cost') : reasons.costsWhatIsWithin();
  const unknown = [
    ...(own === undefined ? [reasons.keyNotGiven(key.noun)] : []),
    ...(own !== undefined && !isKnown ? [reasons.keysAboveNotGiven(rule)] : []),
    ...(trait === undefined ? [] : unknownOf(trait, limit)),
    ...(cost === undefined ? [costUnknown] : []),
    ...(typeof priority === 'function' ? [reasons.isFunction('priority')] : []),
    ...(options.skip === undefined ? [] : [reasons.isFunction('skip')]),
  ];
  if (unknown.length === 0) return { status: 'asked', ...known };
  return { status: 'depends on the request', ...known, reason: unknown.join('; ') };
}

/** The reason why the request's trait is not known, if the limit depends on it. */
function unknownOf({ by, option }: RequestTrait<BoundKey>, limit: CompiledLimit): string[] {
  if (typeof by === 'function') return [reasons.isFunction(option)];
  return limit.unmet !== limit || by.given === 'global' ? [] : [reasons.tenantNotGiven(by.noun)];
}

/** The cost of the request for a limit; `undefined` if that depends on the request. `given`: the units if `cost` is a function. */
function costOfRoute(
  rule: Rule,
  identities: Identities,
  given: number | undefined,
  rules: readonly Rule[],
): number | undefined {
  const open = rules
    .filter(({ ancestors }) => ancestors.includes(rule))
    .filter((each) => mayLeaveOut(each, identities));
  if (open.length > MOST_OPEN && !rule.hasCost) return undefined;
  const costs = new Set<number>();
  for (let choice = 0; choice < 2 ** open.length; choice++) {
    const leftOut = open.filter((_, index) => (choice & (1 << index)) !== 0);
    const input = new LeveledInput(rules, {
      skips: (each) => leftOut.includes(each),
      identity: () => NOBODY,
      cost: ({ settings: { cost: own } }) => (typeof own === 'number' ? own : (given ?? NaN)),
    });
    // This input is always synchronous.
    costs.add(input.cost(rule) as number);
  }
  const [cost] = costs;
  return costs.size === 1 && !Number.isNaN(cost) ? cost : undefined;
}

/** Returns true if a level may not count a request. */
function mayLeaveOut(rule: Rule, identities: Identities): boolean {
  const { options, onMissingKey } = rule.settings;
  return options.skip !== undefined || (onMissingKey === 'skip' && identities.of(rule) === undefined);
}
