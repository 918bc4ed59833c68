import { IncomingMessage } from 'node:http';
import type { LimitedRequest } from './limited-request.js';

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
