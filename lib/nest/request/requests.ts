import { type ExecutionContext, Injectable } from '@nestjs/common';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import type { RouteRules } from '../../app/rules/route-rules.js';
import { asObject } from '../../engine/util/objects.js';
import { callOf, partsOf } from '../../app/transports/read-request.js';
import { type GuardContinuation, LimitedRequest } from './limited-request.js';
import { keepRequest, requestOfCall } from './request-of-call.js';
import { Transports } from './transports.js';

/**
 * The latest call per message context, or per client if messages have no context, for calls that the array of their arguments identifies.
 */
const latest = new WeakMap<object, LimitedRequest>();
/** The requests of middlewares, by Node's own request, which every framework passes to them. */
const early = new WeakMap<object, LimitedRequest>();

/** Creates the request objects. Middleware, guards and interceptor of one call share one object. */
@Injectable()
export class Requests {
  constructor(private readonly transports: Transports) {}

  /** The request of a middleware, which doesn't know the handler. */
  ofMiddleware(
    request: object,
    response: object,
    routeRules: RouteRules,
    continuation: GuardContinuation,
  ): LimitedRequest {
    let found = early.get(request);
    if (found === undefined) {
      const context = new ExecutionContextHost([request, response]);
      const reader = this.transports.of(context);
      found = new LimitedRequest(context, context.getClass(), context.getHandler(), reader, routeRules, continuation);
      early.set(request, found);
    }
    return found;
  }

  /** The request of a call, created when the call is first seen. */
  ofCall(context: ExecutionContext, routeRules: RouteRules, continuation: GuardContinuation): LimitedRequest {
    const reader = this.transports.of(context);
    const call = callOf(reader, context);
    const type = context.getClass();
    const handler = context.getHandler();
    const first = requestOfCall(call);
    const found = findIn(first, type, handler);
    if (found !== undefined) return found;
    const request = new LimitedRequest(context, type, handler, reader, routeRules, continuation);
    if (first === undefined) {
      keepRequest(call, request, routeRules.continuesAfterGuards);
    } else {
      request.other = first.other;
      first.other = request;
    }
    const shared = Array.isArray(call) ? sharedOf(call) : undefined;
    if (shared !== undefined) latest.set(shared, request);
    return request;
  }

  /** The request of a call that a guard has seen. */
  find(context: ExecutionContext): LimitedRequest | undefined {
    return requestOf(context, callOf(this.transports.of(context), context));
  }

  /** The request that a middleware has created for a call. */
  findEarly(context: ExecutionContext): LimitedRequest | undefined {
    return findEarly(partsOf(this.transports.of(context), context).request);
  }
}

/** The request that a middleware has created. */
export function findEarly(request: object | undefined): LimitedRequest | undefined {
  if (request === undefined) return undefined;
  // Fastify wraps the request, Express extends it.
  return early.get(request) ?? early.get((request as { raw?: object }).raw ?? request);
}

/**
 * Finds the request of a call from its arguments, if one of them identifies it. Parameter decorators receive a different array, so if the
 * array identifies the call, it is the latest one with the same context.
 */
export function searchRequest(context: ExecutionContext): LimitedRequest | undefined {
  const args: readonly unknown[] = context.getArgs();
  for (const each of [...args, args]) {
    const request = typeof each === 'object' && each !== null ? requestOf(context, each) : undefined;
    if (request !== undefined) return request;
  }
  // A WeakMap returns undefined for non-objects.
  const last = latest.get(args[1] as object);
  return last?.handler === context.getHandler() && last.type === context.getClass() ? last : undefined;
}

/** Finds the request for an exception filter, which doesn't know the handler: the latest request that has been decided. */
export function searchDecided(args: readonly unknown[]): LimitedRequest | undefined {
  for (const each of [...args, args]) {
    const first = typeof each === 'object' && each !== null ? requestOfCall(each) : undefined;
    const found = decidedOf(first);
    if (found !== undefined) return found;
  }
  return decidedOf(latestWith(args));
}

/** The latest request of one call that has been decided. */
export function decidedOf(first: LimitedRequest | undefined): LimitedRequest | undefined {
  // Newer requests come after the first one.
  for (let each = first?.other; each !== undefined; each = each.other) if (each.result !== undefined) return each;
  return first?.result === undefined ? undefined : first;
}

/** The object that all argument arrays of a call share: the context of a message, or else its client. */
function sharedOf([client, message]: readonly unknown[]): object | undefined {
  return asObject(message) ?? asObject(client);
}

/** The latest request with the context of these arguments, or with their client and message. */
function latestWith(args: readonly unknown[]): LimitedRequest | undefined {
  const shared = sharedOf(args);
  const last = shared === undefined ? undefined : latest.get(shared);
  const [client, message]: readonly unknown[] = last?.context.getArgs() ?? [];
  return client === args[0] && message === args[1] ? last : undefined;
}

function requestOf(context: ExecutionContext, call: object): LimitedRequest | undefined {
  return findIn(requestOfCall(call), context.getClass(), context.getHandler());
}

function findIn(first: LimitedRequest | undefined, type: object, handler: object): LimitedRequest | undefined {
  let each = first;
  while (each !== undefined && (each.handler !== handler || each.type !== type)) each = each.other;
  return each;
}
