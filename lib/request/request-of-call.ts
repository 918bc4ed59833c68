import { IncomingMessage } from 'node:http';
import type { LimitedRequest } from './limited-request.js';

/** Where the raw headers of a request keep what is known of it. It is neither copied nor shown with them. */
const KEPT = Symbol('nestjs-sluice');

/** What the parser of Node makes anew for each request, and frameworks leave alone. */
type RawHeaders = string[] & { [KEPT]?: LimitedRequest };

/** What other objects stand for: lists of arguments, requests of HTTP/2, or objects that wrap a request. */
const others = new WeakMap<object, LimitedRequest>();

/**
 * What is known of a call, by the object that stands for it. A map of objects that live shortly makes each collection of garbage dearer,
 * so a request of HTTP has it itself: at its list of raw headers, since one property more makes all that a framework does with the
 * request slower.
 */
export function requestOfCall(call: object): LimitedRequest | undefined {
  const kept = keptBy(call);
  return kept?.call === call ? kept : others.get(call);
}

/**
 * Keeps what is known of a call; where it has to be found again, whatever becomes of the raw headers meanwhile: a guard that
 * replaces them must not take the check away that follows the guards.
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

/** What a request keeps, or another one that it inherits from or is a proxy of: only the same object is the same call. */
function keptBy(call: object): LimitedRequest | undefined {
  return rawHeadersOf(call)?.[KEPT];
}

/** Express extends Node's request, and Fastify has it. */
function rawHeadersOf(call: object): RawHeaders | undefined {
  const request: unknown = call instanceof IncomingMessage ? call : (call as { readonly raw?: unknown }).raw;
  return request instanceof IncomingMessage && Array.isArray(request.rawHeaders) ? request.rawHeaders : undefined;
}
