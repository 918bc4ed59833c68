import { IncomingMessage } from 'node:http';
import type { LimitedRequest } from './limited-request.js';

/** Where a request of Node's HTTP server keeps what is known of it. It is neither copied nor shown with the request. */
const KEPT = Symbol('nestjs-sluice');

/** Express extends Node's request, and Fastify has it. */
interface HttpRequest {
  readonly raw?: unknown;
  [KEPT]?: LimitedRequest;
}

/** What other objects stand for: lists of arguments, requests of HTTP/2, or objects that wrap a request. */
const others = new WeakMap<object, LimitedRequest>();

/**
 * What is known of a call, by the object that stands for it. A map of objects that live shortly makes each collection of garbage dearer,
 * so a request of HTTP has it itself.
 */
export function requestOfCall(call: object): LimitedRequest | undefined {
  const kept = keptBy(call);
  return kept?.call === call ? kept : others.get(call);
}

/** Keeps what is known of a call. */
export function keepRequest(call: object, request: LimitedRequest): void {
  if (!isHttp(call) || !Object.isExtensible(call) || keptBy(call) !== undefined) {
    others.set(call, request);
    return;
  }
  request.call = call;
  Object.defineProperty(call, KEPT, { value: request, configurable: true });
}

/** What a request keeps, or another one that it inherits from or is a proxy of: only the same object is the same call. */
function keptBy(call: object): LimitedRequest | undefined {
  return isHttp(call) ? call[KEPT] : undefined;
}

function isHttp(call: object): call is HttpRequest {
  return call instanceof IncomingMessage || (call as HttpRequest).raw instanceof IncomingMessage;
}
