import { isIP } from 'node:net';
import type { ExecutionContext } from '@nestjs/common';
import { wholeNumber, refuseUnknown } from '../../engine/options/check-options.js';
import { RateLimitConfigError } from '../../engine/errors/errors.js';
import { messages } from '../../engine/errors/messages/general.js';
import type { LimitQuery, RouteQuery } from './question.js';

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
  const isLimit = (typeof limit === 'string' && limit !== '') || (typeof limit === 'object' && limit !== null);
  if (!isLimit) throw wrongOption('limit', limit, 'the name of a limit, or its definition');
  if (!isIdentity(key)) throw wrongOption('key', key, 'a string that is not empty');
  if (cost !== undefined) wholeNumber(LOCATION, 'cost', cost, { min: 0 });
  if (share !== undefined && !isIdentity(share)) throw wrongOption('share', share, 'a string that is not empty');
  if (ip !== undefined && (typeof ip !== 'string' || isIP(ip) === 0)) {
    throw wrongOption('ip', ip, "an IP address such as '203.0.113.7'");
  }
  return query as LimitQuery;
}

function readRouteQuery(query: object): RouteQuery {
  const { controller, handler, key, cost, share } = query as { [option in keyof RouteQuery]: unknown };
  refuseUnknown(LOCATION, query, ROUTE_OPTIONS);
  if (!isIdentity(controller) && typeof controller !== 'function') {
    throw wrongOption('controller', controller, 'a class, or its name');
  }
  if (!isIdentity(handler)) throw wrongOption('handler', handler, 'the name of a method');
  if (key !== undefined && !areIdentities(key)) {
    throw wrongOption(
      'key',
      key,
      "an identity, a list of them, or identities by the names of limits: { api: 'tenant:acme' }",
    );
  }
  if (cost !== undefined) wholeNumber(LOCATION, 'cost', cost, { min: 0 });
  if (share !== undefined && !isIdentity(share)) throw wrongOption('share', share, 'a string that is not empty');
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

function wrongOption(option: string, got: unknown, expected: string): RateLimitConfigError {
  if (got === undefined)
    return new RateLimitConfigError(messages.missingOption(LOCATION, option, expected), {
      code: 'SLUICE_MISSING_OPTION',
    });
  return new RateLimitConfigError(messages.wrongOption(LOCATION, option, got, expected));
}
