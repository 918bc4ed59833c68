import { isIP } from 'node:net';
import type { ExecutionContext, Type } from '@nestjs/common';
import type { LimitDefinition } from '../../app/config/limit-definition.js';
import { isLimit } from '../../app/limiter/limit-checks.js';
import { configError, RateLimitConfigError } from '../../engine/errors/errors.js';
import { messages } from '../../engine/errors/messages/general.js';
import { refuseUnknown, wholeNumber, wrongOption } from '../../engine/options/check-options.js';

/** A question about a limit. */
export interface LimitQuery {
  /** The limit: its name, or its definition. */
  limit: string | LimitDefinition;
  /** The key of the counter, such as `'tenant:acme'`, in the form that `consume` takes and a `KeyResolver` returns. */
  key: string;
  /** The keys of its parent limits by name, if any: `{ team: 't1', org: 'o1' }`. */
  within?: Readonly<Record<string, string>> | undefined;
  /**
   * Units: a whole number >= 0.
   * @default the limit's own cost, or 1
   */
  cost?: number;
  /**
   * The tenant, for a limit with `share`, in the form that `consume` takes.
   * @default none: explains the total of all tenants
   */
  share?: string;
  /**
   * The client's address, for lists of addresses.
   * @default none, as in calls from code
   */
  ip?: string;
}

/** A question about a route, without a request. */
export interface RouteQuery {
  /** The class: a controller, a resolver or a gateway; or its name. */
  controller: string | Type;
  /** The name of its method. */
  handler: string;
  /**
   * The caller: an identity such as `'ip:203.0.113.7'`; several, such as `['user:42', 'ip:203.0.113.7']`, of which each limit uses the
   * first that its `key` can produce; or identities per limit name, such as `{ api: 'tenant:acme' }`. The first address among them is the
   * client's address, which is also looked up in lists.
   * @default unknown: only limits with key `'global'` have a state
   */
  key?: string | readonly string[] | Readonly<Record<string, string>>;
  /**
   * The units, for limits whose `cost` is a function: a whole number >= 1.
   * @default it depends on the request
   */
  cost?: number;
  /**
   * The tenant, for limits with `share`, in the form that their `by` returns.
   * @default depends on the request: explains the total of all tenants
   */
  share?: string;
}

export const LOCATION = 'LimiterService.explain';

const LIMIT_OPTIONS = ['limit', 'key', 'within', 'cost', 'share', 'ip'];
const ROUTE_OPTIONS = ['controller', 'handler', 'key', 'cost', 'share'];

/** The subject of a question. */
export type Question =
  | { readonly kind: 'limit'; readonly query: LimitQuery }
  | { readonly kind: 'route'; readonly query: RouteQuery }
  | { readonly kind: 'request'; readonly context: ExecutionContext };

/** Reads a question. Throws `RateLimitConfigError`. */
export function readQuestion(asked: unknown): Question {
  if (isContext(asked)) return { kind: 'request', context: asked };
  const isObject = typeof asked === 'object' && asked !== null;
  if (isObject && 'limit' in asked) return { kind: 'limit', query: readLimitQuery(asked) };
  if (isObject && 'controller' in asked) return { kind: 'route', query: readRouteQuery(asked) };
  throw new RateLimitConfigError(messages.noQuestion(LOCATION, asked));
}

function readLimitQuery(query: object): LimitQuery {
  const { limit, key, cost, share, ip } = query as { [option in keyof LimitQuery]: unknown };
  refuseUnknown(LOCATION, query, LIMIT_OPTIONS);
  if (!isLimit(limit)) throw missingOrWrong('limit', limit, 'the name of a limit, or its definition');
  if (!isIdentity(key)) throw missingOrWrong('key', key, 'a string that is not empty');
  if (cost !== undefined) wholeNumber(LOCATION, 'cost', cost, { min: 0 });
  if (share !== undefined && !isIdentity(share)) throw missingOrWrong('share', share, 'a string that is not empty');
  if (ip !== undefined && (typeof ip !== 'string' || isIP(ip) === 0)) {
    throw missingOrWrong('ip', ip, "an IP address such as '203.0.113.7'");
  }
  return query as LimitQuery;
}

function readRouteQuery(query: object): RouteQuery {
  const { controller, handler, key, cost, share } = query as { [option in keyof RouteQuery]: unknown };
  refuseUnknown(LOCATION, query, ROUTE_OPTIONS);
  if (!isIdentity(controller) && typeof controller !== 'function') {
    throw missingOrWrong('controller', controller, 'a class, or its name');
  }
  if (!isIdentity(handler)) throw missingOrWrong('handler', handler, 'the name of a method');
  if (key !== undefined && !areIdentities(key)) {
    throw missingOrWrong(
      'key',
      key,
      "an identity, a list of them, or identities by the names of limits: { api: 'tenant:acme' }",
    );
  }
  if (cost !== undefined) wholeNumber(LOCATION, 'cost', cost, { min: 0 });
  if (share !== undefined && !isIdentity(share)) throw missingOrWrong('share', share, 'a string that is not empty');
  return query as RouteQuery;
}

function isContext(asked: unknown): asked is ExecutionContext {
  const { getClass, getHandler, getType } = (asked ?? {}) as { [method in keyof ExecutionContext]?: unknown };
  return [getClass, getHandler, getType].every((method) => typeof method === 'function');
}

function areIdentities(key: unknown): boolean {
  if (typeof key === 'object' && key !== null) return Object.values(key).every(isIdentity);
  return isIdentity(key);
}

function isIdentity(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

function missingOrWrong(option: string, got: unknown, expected: string): RateLimitConfigError {
  if (got === undefined)
    return configError('SLUICE_MISSING_OPTION', messages.missingOption(LOCATION, option, expected));
  return wrongOption(LOCATION, option, got, expected);
}
