import type { ExecutionContext } from '@nestjs/common';
import type { Phase } from '../../config/common-limit-options.js';
import { messages } from '../../../engine/errors/messages/general.js';
import type { BoundKey } from '../../key-resolvers/key-resolver.factory.js';
import { connectionOf, onClose } from '../../transports/connection.js';
import type { RequestParts } from '../../transports/request-reader.js';
import type { Rule } from '../rule.js';

/** The route of a request, for messages. */
export function routeText(context: ExecutionContext): string {
  const type = context.getClass() as Function | null;
  const handler = context.getHandler() as Function | null;
  return type === null ? 'every route' : `${type.name || 'a class without a name'}.${handler?.name ?? ''}`;
}

/** The end of a text that was composed with a missing value or with an object. */
const OF_NOTHING = /(?:^|[^A-Za-z0-9])(?:undefined|null|NaN|\[object Object\])$/;
/** The maximum number of field names in a message. */
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
export function warnOfUserWithoutId(rule: Rule, context: ExecutionContext, { request }: RequestParts): void {
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
export function warnOfMissingKey(
  rule: Rule,
  by: BoundKey,
  context: ExecutionContext,
  parts: RequestParts,
  phase: Phase,
): void {
  const { key, log, addressIsMeant } = rule.settings;
  if (addressIsMeant === true || typeof by.given !== 'function') return;
  const handler = context.getHandler() as Function | null;
  let counts = seen.get(rule);
  if (counts === undefined) seen.set(rule, (counts = new Map<object | null, number>()));
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
