import type { IncomingMessage } from 'node:http';
import { asObject } from '../../engine/util/objects.js';

/** The members of a framework's HTTP adapter that are used here. */
export interface FrameworkAdapter {
  getType(): string;
  getInstance(): unknown;
}

/** Reads the `ip` of a request like a framework does, so that the same proxies are trusted. */
export type ReadAddress = (request: IncomingMessage) => string | undefined;

/** The key under which Fastify stores the class of its requests. */
const FASTIFY_REQUEST = 'fastify.Request';
/** The key under which it stores the options of its app. */
const FASTIFY_OPTIONS = 'fastify.options';

/** Reads addresses with the `request.ip` of Express and Fastify; `undefined` for other frameworks. */
export function frameworkAddress(adapter: FrameworkAdapter | undefined): ReadAddress | undefined {
  const type = adapter?.getType();
  const instance = adapter?.getInstance() as { readonly request?: object } | undefined;
  if (instance === undefined || (type !== 'express' && type !== 'fastify')) return undefined;
  const prototype = type === 'express' ? instance.request : requestsOf(instance);
  if (prototype === undefined || !('ip' in prototype)) return undefined;
  return (request) => {
    const own: object =
      type === 'express'
        ? Object.create(request, { app: { value: instance } })
        : Object.create(prototype, { raw: { value: request } });
    return Reflect.get(prototype, 'ip', own) as string | undefined;
  };
}

/** The option `trustProxy` of a Fastify app or of one of its contexts; `undefined` if it is not known. */
export function proxiesOfFastify(fastify: unknown): unknown {
  // Contexts inherit from their app.
  for (let each = asObject(fastify); each !== undefined; each = asObject(Object.getPrototypeOf(each))) {
    const options = keptBy(each, FASTIFY_OPTIONS);
    if (options !== undefined) return (options as { readonly trustProxy?: unknown }).trustProxy;
  }
  return undefined;
}

function requestsOf(fastify: object): object | undefined {
  return (keptBy(fastify, FASTIFY_REQUEST) as { readonly prototype?: object } | undefined)?.prototype;
}

function keptBy(fastify: object, description: string): unknown {
  const key = Object.getOwnPropertySymbols(fastify).find((symbol) => symbol.description === description);
  return key && (fastify as Record<symbol, unknown>)[key];
}

/** An address that no proxy has, because it is reserved for documentation. */
const CHOSEN = '203.0.113.7';
const NO_PROXY = '198.51.100.7';
/** More hops than any app has proxies in front of it. */
const HOPS = 32;

/** Returns true if a framework accepts any address that a client claims to have. */
export function trustsAnyone(adapter: FrameworkAdapter | undefined): boolean {
  const forwarded = [CHOSEN, ...Array.from({ length: HOPS }, () => NO_PROXY)].join(', ');
  const request = { headers: { 'x-forwarded-for': forwarded }, socket: { remoteAddress: NO_PROXY } };
  try {
    return frameworkAddress(adapter)?.(request as unknown as IncomingMessage) === CHOSEN;
  } catch {
    // A function of the app decides which proxies to trust, and needs more of the request.
    return false;
  }
}
