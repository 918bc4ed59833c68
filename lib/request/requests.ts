import { type ExecutionContext, Injectable } from '@nestjs/common';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import type { RouteRules } from '../rules/route-rules.js';
import { callOf, partsOf } from '../transports/read-request.js';
import { type GuardContinuation, LimitedRequest } from './limited-request.js';
import { keepRequest, requestOfCall } from './request-of-call.js';
import { Transports } from './transports.js';

/** The latest call with the context of a message, for transports whose argument array identifies a call. */
const latest = new WeakMap<object, LimitedRequest>();
/** The requests of middlewares by Node's own request, which every framework passes to middlewares. */
const early = new WeakMap<object, LimitedRequest>();

/** Reads requests. Middleware, guards and interceptor of one call get the same object. */
@Injectable()
export class Requests {
  constructor(private readonly transports: Transports) {}

  /** The request of a middleware, which knows no handler. */
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
    const shared: unknown = Array.isArray(call) ? call[1] : undefined;
    if (typeof shared === 'object' && shared !== null) latest.set(shared, request);
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
 * Finds the request of a call given only its arguments, if one of them identifies it. Parameter decorators get another array, so
 * if the array identifies the call, it is the latest one with its context.
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

function requestOf(context: ExecutionContext, call: object): LimitedRequest | undefined {
  return findIn(requestOfCall(call), context.getClass(), context.getHandler());
}

function findIn(first: LimitedRequest | undefined, type: object, handler: object): LimitedRequest | undefined {
  let each = first;
  while (each !== undefined && (each.handler !== handler || each.type !== type)) each = each.other;
  return each;
}
