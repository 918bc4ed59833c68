import {
  BadRequestException,
  type ExecutionContext,
  InternalServerErrorException,
  UnauthorizedException,
} from '@nestjs/common';
import { argumentError, configError } from '../../../engine/errors/errors.js';
import { messages } from '../../../engine/errors/messages/general.js';
import type { ResolvedKey } from '../../../engine/limits/identity.js';
import type { OnMissingKey, Phase } from '../../config/common-limit-options.js';
import type { BoundKey } from '../../key-resolvers/key-resolver.factory.js';
import { getOrMake } from '../../../engine/util/objects.js';
import { connectionOf, onClose } from '../../transports/connection.js';
import { isUnread } from '../../transports/read-request.js';
import type { RequestParts } from '../../transports/request-reader.js';
import type { Rule } from '../rule.js';

/**
 * The outcome for a request without a key: it counts under its address, the limit does not apply, or the request is rejected. The last two
 * are also possible if no reader supports the call, so that its key is unknown.
 */
export type MissingKeyOutcome = OnMissingKey | 'skip unread' | 'refuse unread';

/** The identity of a resolved key; `undefined` if it is missing. Throws `RateLimitArgumentError` if it is invalid. */
export function identityOfKey(rule: Rule, key: ResolvedKey): string | undefined {
  if (typeof key === 'string' && key !== '') return key;
  if (key === undefined || key === null || key === '') return undefined;
  if (Number.isFinite(key) || typeof key === 'bigint') return String(key);
  throw argumentError('SLUICE_INVALID_RESULT', messages.wrongResolvedKey(rule.name, key));
}

/** The outcome for a request without a key of a limit: the limit's own key, or that of its tenants. */
export function missingKeyOutcome({ settings, limit }: Rule, by: BoundKey, parts: RequestParts): MissingKeyOutcome {
  const { onMissingKey, onMissingReader } = settings;
  // A shadow limit never rejects a request.
  const refuses = onMissingKey === 'refuse' && !limit.shadow;
  // A key function has run and found nothing, so its key is known to be missing. Without a reader, though, the address is unknown.
  const isKnownMissing = !isUnread(parts) || refuses || (onMissingKey !== 'ip' && typeof by.given === 'function');
  if (!isKnownMissing) return limit.shadow || onMissingReader === 'skip' ? 'skip unread' : 'refuse unread';
  return onMissingKey === 'refuse' && !refuses ? 'skip' : onMissingKey;
}

/**
 * The identity of a request without a key; `undefined` if the limit does not apply. Throws if the request is rejected.
 * @param phase the phase of the check, which other levels of the hierarchy may postpone
 */
export function identityWithoutKey(
  rule: Rule,
  by: BoundKey,
  context: ExecutionContext,
  parts: RequestParts,
  phase = rule.settings.phase,
): string | undefined {
  const { byAddress, log } = rule.settings;
  const outcome = missingKeyOutcome(rule, by, parts);
  if (by.needsUser) warnOfUserWithoutId(rule, context, parts);
  switch (outcome) {
    case 'refuse':
      if (by.needsUser) throw new UnauthorizedException(messages.noUser());
      throw new BadRequestException(messages.noKey(by.noun));
    case 'refuse unread': {
      const text = messages.noReader(rule.name, context.getType<string>());
      log.error(text);
      throw new InternalServerErrorException(messages.uncheckable(), {
        cause: configError('SLUICE_NO_READER', text),
      });
    }
    case 'skip unread':
      log.warn(messages.skipsUnread(rule.name, context.getType<string>()));
  }
  if (outcome !== 'ip') return undefined;
  const identity = byAddress(context, parts);
  if (identity === undefined) log.warn(messages.noAddress(rule.name));
  else warnOfMissingKey(rule, by, context, parts, phase);
  return identity;
}

/** The route of a request, for messages. */
export function routeText(context: ExecutionContext): string {
  const type = context.getClass() as Function | null;
  const handler = context.getHandler() as Function | null;
  return type === null ? 'every route' : `${type.name || 'a class without a name'}.${handler?.name ?? ''}`;
}

/** The end of a text that was composed with a missing value or with an object. */
const OF_NOTHING = /(?:^|[^A-Za-z0-9])(?:undefined|null|NaN|\[object Object\])$/;
const MOST_FIELDS = 10;

/** The rules whose keys have been reported. */
const reported = new WeakSet<Rule>();

/** Returns true if all requests that lack some value would have this key. */
export function isMadeOfNothing(key: string): boolean {
  return OF_NOTHING.test(key);
}

/** Warns once about a function that composes a key with a missing value: all requests without that value would share a counter. */
export function warnOfKeyOfNothing(
  rule: Rule,
  option: string,
  key: string,
  context: ExecutionContext,
  phase: Phase,
): void {
  if (reported.has(rule)) return;
  reported.add(rule);
  rule.settings.log.warn(messages.keyOfNothing(rule.name, routeText(context), option, key, phase));
}

/** Warns once about users without an id: they are identified by their address, or rejected as if they were not logged in. */
function warnOfUserWithoutId(rule: Rule, context: ExecutionContext, { request }: RequestParts): void {
  const user: unknown = request?.user;
  if (typeof user !== 'object' || user === null || reported.has(rule)) return;
  reported.add(rule);
  const fields = Object.keys(user).slice(0, MOST_FIELDS);
  rule.settings.log.warn(messages.userWithoutId(rule.name, routeText(context), fields));
}

/** The number of requests without a key that are watched for a user, per limit and route. */
const MOST_WATCHED = 20;

/** The number of requests without a key, per limit and handler. */
const seen = new WeakMap<Rule, Map<object | null, number>>();

/**
 * Warns once about a function that found no key, so that the request counts under its address. Nothing else would reveal that a limit per
 * tenant has become one per address. If a guard set a user after the check, the warning mentions it; that is known once the response has
 * ended.
 */
function warnOfMissingKey(
  rule: Rule,
  by: BoundKey,
  context: ExecutionContext,
  parts: RequestParts,
  phase: Phase,
): void {
  const { key, log, addressIsMeant } = rule.settings;
  if (addressIsMeant === true || typeof by.given !== 'function') return;
  const handler = context.getHandler() as Function | null;
  const counts = getOrMake(seen, rule, () => new Map<object | null, number>());
  const count = counts.get(handler) ?? 0;
  if (count === MOST_WATCHED) return;
  counts.set(handler, count + 1);
  const route = routeText(context);
  const option = by === key ? 'key' : 'share.by';
  if (count === 0) log.warn(messages.countsAddress(rule.name, route, option, phase));
  const { request, response } = parts;
  const connection = phase === 'guard' ? connectionOf(response) : undefined;
  if (connection === undefined) return;
  onClose(connection, () => {
    const user = request?.user;
    if (user === undefined || user === null) return;
    counts.set(handler, MOST_WATCHED);
    log.warn(messages.foundUserLater(rule.name, route, option));
  });
}
