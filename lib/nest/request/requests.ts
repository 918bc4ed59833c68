import { IncomingMessage } from 'node:http';
import { type ExecutionContext, Injectable } from '@nestjs/common';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import type { RouteRules } from '../../app/rules/route-rules.js';
import { callOf, partsOf } from '../../app/transports/read-request.js';
import { asObject } from '../../engine/util/objects.js';
import { type GuardContinuation, LimitedRequest } from './limited-request.js';
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

/** The property of a request's raw headers that holds its `LimitedRequest`. It is neither copied nor displayed with them. */
const KEPT = Symbol('nestjs-sluice');

/** The array that Node's parser creates for each request, and that frameworks leave unchanged. */
type RawHeaders = string[] & { [KEPT]?: LimitedRequest };

/** The requests of other objects: argument arrays, HTTP/2 requests, or objects that wrap a request. */
const others = new WeakMap<object, LimitedRequest>();

/**
 * Finds the request of a call by the object that identifies the call. A map with short-lived keys makes each garbage collection slower, so
 * an HTTP request stores it itself. It does so in its array of raw headers, since an additional property would slow down everything that a
 * framework does with the request.
 */
export function requestOfCall(call: object): LimitedRequest | undefined {
  const kept = keptBy(call);
  return kept?.call === call ? kept : others.get(call);
}

/**
 * Stores the request of a call. With `mustBeFound`, it is found even if a guard replaces the raw headers, so that the check after the
 * guards isn't skipped.
 */
export function keepRequest(call: object, request: LimitedRequest, mustBeFound = false): void {
  if (mustBeFound) others.set(call, request);
  const headers = rawHeadersOf(call);
  if (headers === undefined || !Object.isExtensible(headers) || headers[KEPT] !== undefined) {
    others.set(call, request);
    return;
  }
  request.call = call;
  Object.defineProperty(headers, KEPT, { value: request, configurable: true });
}

/** Finds the request of a Node request that a framework wraps: then the wrapper identifies the call. */
export function requestOfRaw(request: object): LimitedRequest | undefined {
  const kept = keptBy(request);
  const wrapper: { readonly raw?: unknown } = kept?.call ?? {};
  return wrapper.raw === request ? kept : undefined;
}

/** The stored request, unless it is inherited or seen through a proxy: only the same object is the same call. */
function keptBy(call: object): LimitedRequest | undefined {
  return rawHeadersOf(call)?.[KEPT];
}

/** Express extends Node's request, and Fastify wraps it. */
function rawHeadersOf(call: object): RawHeaders | undefined {
  const request: unknown = call instanceof IncomingMessage ? call : (call as { readonly raw?: unknown }).raw;
  return request instanceof IncomingMessage && Array.isArray(request.rawHeaders) ? request.rawHeaders : undefined;
}
