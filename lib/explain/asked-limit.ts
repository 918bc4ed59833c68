import type { ExecutionContext } from '@nestjs/common';
import { assertCost } from '../limits/arguments.js';
import { assertPriority, type Priority } from '../limits/priority.js';
import { RateLimitArgumentError } from '../errors/errors.js';
import { messages } from '../errors/messages.js';
import type { CompiledLimit } from '../limits/compiled-limit.js';
import type { ListedEntry } from '../overrides/lists/list.js';
import type { Rule } from '../rules/rule.js';
import type { RequestParts } from '../transports/request-reader.js';
import type { LimitStatus } from './explanation.js';
import type { Identities } from './identities.js';
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
export function askedFromCode(rule: Rule, identity: string, cost: number): AskedLimit {
  const limit = rule.limitFor(identity).forPriority(rule.fixedPriority);
  // Which of its counters is meant, only a route says.
  if (rule.perRoute && rule.ofAll === undefined) {
    return { status: 'depends on the request', limit, cost, reason: reasons.countsPerRoute() };
  }
  if (limit.off) return { status: 'off', limit, identity, cost, reason: reasons.isOff() };
  return { status: 'asked', limit, identity, cost, priority: rule.fixedPriority };
}

/** A request that is not there: functions cannot be asked. */
export function askedOfRoute(rule: Rule, identities: Identities, given: number | undefined): AskedLimit {
  const { skip, cost, priority, key } = rule.settings;
  const { identity, note } = identities.of(rule) ?? {};
  const decides = identity === undefined ? rule.limit : rule.limitFor(identity);
  const limit = decides.forPriority(rule.fixedPriority);
  const units = typeof cost === 'number' ? cost : given;
  const known = { limit, identity, note, cost: units, priority: rule.fixedPriority };
  if (limit.off) return { status: 'off', ...known, reason: reasons.isOff() };
  const unknown = [
    ...(identity === undefined ? [reasons.keyNotGiven(key.noun)] : []),
    ...(units === undefined ? [reasons.isFunction('cost')] : []),
    ...(typeof priority === 'function' ? [reasons.isFunction('priority')] : []),
    ...(skip === undefined ? [] : [reasons.isFunction('skip')]),
  ];
  if (unknown.length === 0) return { status: 'asked', ...known };
  return { status: 'depends on the request', ...known, reason: unknown.join('; ') };
}

/** A request: its functions are asked, in the same order as when it is checked. */
export async function askedOfRequest(rule: Rule, context: ExecutionContext, parts: RequestParts): Promise<AskedLimit> {
  const { skip, cost, priority, anchor } = rule.settings;
  let at = 'skip';
  try {
    if (skip !== undefined && (await skip(context)))
      return { status: 'skip', limit: rule.limit, reason: reasons.skips() };
    at = 'key';
    const identified = await identify(rule, context, parts);
    const { identity, note } = identified;
    if (identity === undefined) return { status: 'no key', limit: rule.limit, ...identified };
    const configured = rule.limitFor(identity);
    if (configured.off) return { status: 'off', limit: configured, identity, note, reason: reasons.isOff() };
    at = 'anchor';
    const decides = anchor === undefined ? configured : configured.forAnchor(await anchor(context));
    at = 'priority';
    const found = typeof priority === 'function' ? await priority(context) : priority;
    if (typeof priority === 'function') assertPriority(found);
    const limit = decides.forPriority(found);
    at = 'cost';
    const units = typeof cost === 'number' ? cost : await cost(context);
    assertCost(units);
    return { status: 'asked', limit, identity, note, cost: units, priority: found };
  } catch (error) {
    return { status: 'fails', limit: rule.limit, reason: reasons.functionFailed(at, error) };
  }
}

type Found = Pick<AskedLimit, 'identity' | 'note' | 'reason' | 'refuses'>;

/** Whom a request counts for, or what becomes of it. */
async function identify(rule: Rule, context: ExecutionContext, parts: RequestParts): Promise<Found> {
  const { key, onMissingKey, byAddress } = rule.settings;
  const found: unknown = await key.identify(context, parts);
  if (found !== undefined && found !== null && found !== '') return { identity: textOf(found, rule) };
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
