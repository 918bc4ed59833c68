import {
  BadRequestException,
  type ExecutionContext,
  InternalServerErrorException,
  UnauthorizedException,
} from '@nestjs/common';
import { RateLimitArgumentError, RateLimitConfigError } from '../errors/errors.js';
import type { OnMissingReader } from '../config/common-limit-options.js';
import { messages } from '../errors/messages/general.js';
import type { BoundKey } from '../key-resolvers/key-resolver.factory.js';
import type { ResolvedKey } from '../key-resolvers/key-resolver.js';
import { assertCost } from '../limits/arguments.js';
import type { CompiledLimit } from '../limits/compiled-limit.js';
import type { CheckEntry } from '../limits/counter.js';
import { assertPriority, type Priority } from '../limits/priority.js';
import type { RequestParts } from '../transports/request-reader.js';
import { isUnread } from '../transports/unread.reader.js';
import { andThen, type Awaitable, isPromise } from '../util/awaitable.js';
import { warnOfMissingKey } from './missing-keys.js';
import type { Rule } from './rule.js';

/** What a rule asks of the store for one request. */
export interface RuleEntry extends CheckEntry {
  readonly rule: Rule;
}

/** Whether a rule calls no function of the user's: it always applies, costs the same, and its key looks only at the request. */
export function isFixed(rule: Rule): boolean {
  const { skip, key, cost, priority, share, anchor } = rule.settings;
  if (skip !== undefined || share !== undefined || anchor !== undefined) return false;
  if (key.isPure !== true || rule.isNested) return false;
  return typeof cost === 'number' && typeof priority !== 'function';
}

/** What a fixed rule asks of the store, once its key has been asked; nothing if the limit does not apply to the request. */
export function fixedEntry(
  rule: Rule,
  key: ResolvedKey,
  context: ExecutionContext,
  parts: RequestParts,
): RuleEntry | undefined {
  const { settings } = rule;
  const identity = identified(rule, settings.key, key, context, parts);
  if (identity === undefined) return undefined;
  const { cost, priority } = settings;
  const limit = rule.limitFor(identity).forPriority(priority as Priority | undefined);
  if (limit.off) return undefined;
  return ranked({ rule, limit, identity, cost: cost as number }, priority as Priority | undefined);
}

/** What any other rule asks. */
export function askedEntry(
  rule: Rule,
  context: ExecutionContext,
  parts: RequestParts,
): Awaitable<RuleEntry | undefined> {
  const { skip } = rule.settings;
  if (skip === undefined) return countedEntry(rule, context, parts);
  return andThen<boolean, RuleEntry | undefined>(skip(context), (skipped) =>
    skipped ? undefined : countedEntry(rule, context, parts),
  );
}

/** What a rule asks, once it is known whom the request counts for and what it costs; nothing if the limit is not asked. */
export function knownEntry(
  rule: Rule,
  identity: string,
  cost: number,
  context: ExecutionContext,
): Awaitable<RuleEntry | undefined> {
  const limit = rule.limitFor(identity);
  return limit.off ? undefined : rankedEntry(rule, limit, identity, context, cost);
}

/** Whether a request is one that a rule does not count. */
export function skips({ settings: { skip } }: Rule, context: ExecutionContext): Awaitable<boolean> {
  return skip?.(context) ?? false;
}

/**
 * Whom a request counts for, or nothing. Where the limit itself does not count it, or has before, a missing key is no reason to refuse
 * it; but what is within it has one counter, whether it counts or not.
 */
export function identityOf(
  rule: Rule,
  context: ExecutionContext,
  parts: RequestParts,
  counts: boolean,
): Awaitable<string | undefined> {
  const by = rule.settings.key;
  return andThen(by.identify(context, parts), (key) =>
    isMissing(key) && !counts && rule.settings.onMissingKey === 'refuse'
      ? undefined
      : identified(rule, by, key, context, parts),
  );
}

/** What a request costs. */
export function costOf({ settings: { cost } }: Rule, context: ExecutionContext): Awaitable<number> {
  if (typeof cost === 'number') return cost;
  return andThen(cost(context), (units) => {
    assertCost(units);
    return units;
  });
}

/** What a rule asks that counts the request. */
function countedEntry(rule: Rule, context: ExecutionContext, parts: RequestParts): Awaitable<RuleEntry | undefined> {
  const by = rule.settings.key;
  const found = by.identify(context, parts);
  if (isPromise(found)) {
    return andThen(found, (key) => metEntry(rule, identified(rule, by, key, context, parts), context, parts));
  }
  return metEntry(rule, identified(rule, by, found, context, parts), context, parts);
}

/** The identity that a key stands for: that of whom the rule counts, or of the tenant. */
function identified(
  rule: Rule,
  by: BoundKey,
  key: ResolvedKey,
  context: ExecutionContext,
  parts: RequestParts,
): string | undefined {
  if (typeof key === 'string' && key !== '') return key;
  if (isMissing(key)) return identityWithout(rule, by, context, parts);
  if (Number.isFinite(key) || typeof key === 'bigint') return String(key);
  throw new RateLimitArgumentError(messages.wrongResolvedKey(rule.name, key));
}

function isMissing(key: ResolvedKey): key is undefined | null | '' {
  return key === undefined || key === null || key === '';
}

/** Whom a request without a key counts for. */
function identityWithout(rule: Rule, by: BoundKey, context: ExecutionContext, parts: RequestParts): string | undefined {
  const { onMissingKey, byAddress, log } = rule.settings;
  const unread = withoutReader(rule, by, parts);
  if (unread !== undefined) return identityUnread(rule, context, unread);
  // A shadow refuses nothing, whatever the reason.
  if (onMissingKey === 'skip' || (onMissingKey === 'refuse' && rule.limit.shadow)) return undefined;
  if (onMissingKey === 'refuse') {
    if (by.needsUser) throw new UnauthorizedException(messages.noUser());
    throw new BadRequestException(messages.noKey(by.noun));
  }
  const identity = byAddress(context, parts);
  if (identity === undefined) log.warn(messages.noAddress(rule.name));
  else warnOfMissingKey(rule, by, context, parts);
  return identity;
}

/**
 * What becomes of a call that has no key since no reader read it, so that it may have one; nothing where that is not the reason. A
 * function was asked, and needs none: then `onMissingKey` decides, but an address is not known either.
 */
export function withoutReader(
  { settings, limit }: Rule,
  by: BoundKey,
  parts: RequestParts,
): OnMissingReader | undefined {
  const { onMissingKey, onMissingReader } = settings;
  if (!isUnread(parts)) return undefined;
  if (onMissingKey === 'refuse' && !limit.shadow) return undefined;
  if (onMissingKey !== 'ip' && typeof by.given === 'function') return undefined;
  return limit.shadow ? 'skip' : onMissingReader;
}

function identityUnread(
  { name, settings: { log } }: Rule,
  context: ExecutionContext,
  answer: OnMissingReader,
): undefined {
  const transport = context.getType<string>();
  if (answer === 'skip') {
    log.warn(messages.skipsUnread(name, transport));
    return undefined;
  }
  const text = messages.noReader(name, transport);
  log.error(text);
  throw new InternalServerErrorException(messages.uncheckable(), { cause: new RateLimitConfigError(text) });
}

/** What a rule asks for an identity, as its anchor or its tenant meets the limit. */
function metEntry(
  rule: Rule,
  identity: string | undefined,
  context: ExecutionContext,
  parts: RequestParts,
): Awaitable<RuleEntry | undefined> {
  if (identity === undefined) return undefined;
  const limit = rule.limitFor(identity);
  if (limit.off) return undefined;
  const { share, anchor } = rule.settings;
  if (anchor !== undefined) {
    return andThen(anchor(context), (at) => rankedEntry(rule, limit.forAnchor(at), identity, context));
  }
  if (share === undefined) return rankedEntry(rule, limit, identity, context);
  return andThen<ResolvedKey, RuleEntry | undefined>(share.by.identify(context, parts), (found) => {
    const tenant = identified(rule, share.by, found, context, parts);
    if (tenant === undefined) return undefined;
    return rankedEntry(rule, limit.forTenant(share.tenant(tenant, rule.name)), identity, context);
  });
}

/** The same, as the priority of the request meets it. */
function rankedEntry(
  rule: Rule,
  limit: CompiledLimit,
  identity: string,
  context: ExecutionContext,
  cost?: number,
): Awaitable<RuleEntry> {
  const { priority } = rule.settings;
  if (typeof priority !== 'function') return costedEntry(rule, limit, priority, identity, context, cost);
  return andThen(priority(context), (found) => {
    assertPriority(found);
    return costedEntry(rule, limit, found, identity, context, cost);
  });
}

function costedEntry(
  rule: Rule,
  whole: CompiledLimit,
  priority: Priority | undefined,
  identity: string,
  context: ExecutionContext,
  cost: number | undefined,
): Awaitable<RuleEntry> {
  const limit = whole.forPriority(priority);
  return andThen(cost ?? costOf(rule, context), (units) => ranked({ rule, limit, identity, cost: units }, priority));
}

/** An entry that says how important the request is, if that matters. */
function ranked(entry: RuleEntry, priority: Priority | undefined): RuleEntry {
  return priority === undefined ? entry : { ...entry, priority };
}
