import { IncomingMessage } from 'node:http';
import type { LimitedRequest } from './limited-request.js';

/** Where a request of Node's HTTP server keeps what is known of it. It is neither copied nor shown with the request. */
const KEPT = Symbol('nestjs-sluice');

/** Express extends Node's request, and Fastify has it. */
interface HttpRequest {
  readonly raw?: unknown;
  [KEPT]?: LimitedRequest;
}

/** What other objects stand for: lists of arguments, or requests of HTTP/2. */
const others = new WeakMap<object, LimitedRequest>();

/**
 * What is known of a call, by the object that stands for it. A map of objects that live shortly makes each collection of garbage dearer,
 * so a request of HTTP has it itself.
 */
export function requestOfCall(call: object): LimitedRequest | undefined {
  return isHttp(call) ? call[KEPT] : others.get(call);
}

/** Keeps what is known of a call. */
export function keepRequest(call: object, request: LimitedRequest): void {
  if (isHttp(call)) Object.defineProperty(call, KEPT, { value: request, configurable: true });
  else others.set(call, request);
}

function isHttp(call: object): call is HttpRequest {
  return (call instanceof IncomingMessage || (call as HttpRequest).raw instanceof IncomingMessage) && isOpen(call);
}

/** What is frozen cannot keep anything more, unless it has it already. */
function isOpen(call: object): boolean {
  return Object.isExtensible(call) || KEPT in call;
}
