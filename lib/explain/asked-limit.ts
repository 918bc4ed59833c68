import type { ExecutionContext } from '@nestjs/common';
import { assertPriority, type Priority } from '../limits/priority.js';
import { RateLimitArgumentError } from '../errors/errors.js';
import { messages } from '../errors/messages/general.js';
import type { CompiledLimit } from '../limits/compiled-limit.js';
import type { ListedEntry } from '../overrides/lists/list.js';
import type { Rule } from '../rules/rule.js';
import { withoutReader } from '../rules/rule-entry.js';
import type { RequestParts } from '../transports/request-reader.js';
import type { LimitStatus } from './explanation.js';
import type { Identities } from './identities.js';
import { costOfRoute, type RequestCosts } from './level-cost.js';
import type { BoundKey } from '../key-resolvers/key-resolver.factory.js';
import type { RouteQuery } from './question.js';
import { reasons } from './reasons.js';

/** What a limit would be asked for a request. */
export interface AskedLimit {
  readonly status: LimitStatus;
  /** The limit that decides, for this identity. */
  readonly limit: CompiledLimit;
  readonly identity?: string | undefined;
  readonly cost?: number | undefined;
  readonly priority?: Priority | undefined;
  /** What was made of a request without a key. */
  readonly note?: string | undefined;
  readonly reason?: string | undefined;
  /** The entry of a list that decides in its place. */
  readonly list?: ListedEntry | undefined;
  /** Whether the request is refused for what it lacks, before any limit is asked. */
  readonly refuses?: boolean;
}

/** A call from code, which has all that it takes. */
export function askedFromCode(
  rule: Rule,
  identity: string | undefined,
  cost: number,
  share: string | undefined,
): AskedLimit {
  if (identity === undefined) {
    const { limit } = rule;
    return { status: 'depends on the request', limit, cost, reason: reasons.keysAboveNotGiven(namesAbove(rule)) };
  }
  const whole = rule.usualLimit(identity);
  // Which of its counters is meant, only a route says.
  if (rule.perRoute && rule.ofAll === undefined) {
    return { status: 'depends on the request', limit: whole, cost, reason: reasons.countsPerRoute() };
  }
  if (whole.off) return { status: 'off', limit: whole, identity, cost, reason: reasons.isOff() };
  const { limit, failure } = ofTenant(rule, whole, share);
  if (failure !== undefined) return { status: 'fails', limit, identity, cost, reason: failure };
  return { status: 'asked', limit, identity, cost, priority: rule.fixedPriority };
}

/** A request that is not there: functions cannot be asked. */
export function askedOfRoute(
  rule: Rule,
  identities: Identities,
  { cost: given, share }: Pick<RouteQuery, 'cost' | 'share'>,
  rules: readonly Rule[],
): AskedLimit {
  const { skip, priority, key } = rule.settings;
  const { identity: own, note } = identities.of(rule) ?? {};
  const isKnown = [rule, ...rule.ancestors].every((level) => identities.of(level) !== undefined);
  const identity =
    isKnown && own !== undefined ? rule.identityAmong((level) => identities.of(level)?.identity) : undefined;
  const decides = identity === undefined ? rule.limit : rule.limitFor(identity);
  const { limit, failure } = ofTenant(rule, decides.forPriority(rule.fixedPriority), share);
  const units = costOfRoute(rule, rules, identities, given);
  const known = { limit, identity, note, cost: units, priority: rule.fixedPriority };
  if (limit.off) return { status: 'off', ...known, reason: reasons.isOff() };
  if (failure !== undefined) return { status: 'fails', ...known, reason: failure };
  const sharedBy = limit.tenant === undefined ? rule.settings.share?.by : undefined;
  const unknown = [
    ...(own === undefined ? [reasons.keyNotGiven(key.noun)] : []),
    ...(own !== undefined && !isKnown ? [reasons.keysAboveNotGiven(namesAbove(rule))] : []),
    ...(sharedBy === undefined || sharedBy.given === 'global' ? [] : [reasons.tenantNotGiven(sharedBy.noun)]),
    ...(units === undefined ? [costUnknown(rule)] : []),
    ...(typeof priority === 'function' ? [reasons.isFunction('priority')] : []),
    ...(skip === undefined ? [] : [reasons.isFunction('skip')]),
  ];
  if (unknown.length === 0) return { status: 'asked', ...known };
  return { status: 'depends on the request', ...known, reason: unknown.join('; ') };
}

/** A request: its functions are asked, in the same order as when it is checked. */
export async function askedOfRequest(
  rule: Rule,
  context: ExecutionContext,
  parts: RequestParts,
  costs: RequestCosts,
): Promise<AskedLimit> {
  const { skip, priority, anchor } = rule.settings;
  let at = 'skip';
  try {
    if (skip !== undefined && (await skip(context)))
      return { status: 'skip', limit: rule.limit, reason: reasons.skips() };
    at = 'key';
    const identified = await identify(rule, rule.settings.key, context, parts);
    const { identity: own, note } = identified;
    if (own === undefined) return { status: 'no key', limit: rule.limit, ...identified };
    const identity = await identityWithin(rule, own, context, parts);
    const configured = rule.limitFor(identity);
    if (configured.off) return { status: 'off', limit: configured, identity, note, reason: reasons.isOff() };
    at = 'anchor';
    const decides = anchor === undefined ? configured : configured.forAnchor(await anchor(context));
    at = 'share';
    const by = rule.settings.share?.by;
    const tenant = by === undefined ? undefined : await identify(rule, by, context, parts);
    if (tenant !== undefined && tenant.identity === undefined) {
      return { status: 'no key', limit: rule.limit, ...tenant };
    }
    const shared = decides.forTenant(rule.settings.share?.tenant(tenant!.identity, rule.name));
    at = 'priority';
    const found = typeof priority === 'function' ? await priority(context) : priority;
    if (typeof priority === 'function') assertPriority(found);
    const limit = shared.forPriority(found);
    at = 'cost';
    const units = await costs.of(rule);
    return { status: 'asked', limit, identity, note, cost: units, priority: found };
  } catch (error) {
    return { status: 'fails', limit: rule.limit, reason: reasons.functionFailed(at, error) };
  }
}

/** The limit as a tenant meets it, if its units are shared and one is named; or why that cannot be told. */
function ofTenant(
  rule: Rule,
  limit: CompiledLimit,
  share: string | undefined,
): { limit: CompiledLimit; failure?: string } {
  const plan = rule.settings.share;
  if (plan === undefined || share === undefined) return { limit };
  try {
    return { limit: limit.forTenant(plan.tenant(share, rule.name)) };
  } catch (error) {
    return { limit, failure: reasons.functionFailed('share.weight', error) };
  }
}

/** Why nobody knows what a route's request costs a limit. */
function costUnknown({ hasCost }: Rule): string {
  return hasCost ? reasons.isFunction('cost') : reasons.costsWhatIsWithin();
}

/** Whether the key of a limit finds somebody to count. */
export async function finds(rule: Rule, context: ExecutionContext, parts: RequestParts): Promise<boolean> {
  return (await identify(rule, rule.settings.key, context, parts)).identity !== undefined;
}

/** The identity of a request within those that its other levels find. */
async function identityWithin(
  rule: Rule,
  own: string,
  context: ExecutionContext,
  parts: RequestParts,
): Promise<string> {
  const found = new Map([[rule, own as string | undefined]]);
  for (const level of rule.ancestors)
    found.set(level, (await identify(level, level.settings.key, context, parts)).identity);
  return rule.identityAmong((level) => found.get(level));
}

function namesAbove({ ancestors }: Rule): string[] {
  return ancestors.map(({ name }) => name);
}

type Found = Pick<AskedLimit, 'identity' | 'note' | 'reason' | 'refuses'>;

/** Whom a request counts for, or what becomes of it. */
async function identify(rule: Rule, key: BoundKey, context: ExecutionContext, parts: RequestParts): Promise<Found> {
  const { onMissingKey, byAddress } = rule.settings;
  const found: unknown = await key.identify(context, parts);
  if (found !== undefined && found !== null && found !== '') return { identity: textOf(found, rule) };
  const unread = withoutReader(rule, key, parts);
  if (unread !== undefined) {
    const reason = unread === 'skip' ? reasons.unread : reasons.refusesUnread;
    return { reason: reason(key.noun, context.getType<string>()), refuses: unread === 'refuse' };
  }
  if (onMissingKey === 'refuse' && !rule.limit.shadow) {
    return { reason: reasons.refusesWithout(key.noun, key.needsUser ? 401 : 400), refuses: true };
  }
  const identity = onMissingKey === 'ip' ? byAddress(context, parts) : undefined;
  if (identity === undefined) return { reason: reasons.lacksAndSkips(key.noun) };
  return { identity, note: reasons.countsAddress(key.noun) };
}

function textOf(key: unknown, { name }: Rule): string {
  if (typeof key === 'string') return key;
  if (Number.isFinite(key) || typeof key === 'bigint') return String(key);
  throw new RateLimitArgumentError(messages.wrongResolvedKey(name, key));
}
