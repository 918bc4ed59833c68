import type { IncomingMessage } from 'node:http';
import { logger } from '../errors/logger.js';
import { socketMessages } from '../errors/messages/sockets.js';
import { OnceLogger } from '../errors/once-logger.js';

/** The part of a framework's HTTP adapter that is used. */
export interface FrameworkAdapter {
  getType(): string;
  getInstance(): unknown;
}

/** Reads the `ip` of a request as a framework does, so that it trusts the same proxies. */
export type ReadAddress = (request: IncomingMessage) => string | undefined;

/** An Express app, and the prototype of its requests. */
interface ExpressApp {
  readonly request?: object;
}

/** The key under which Fastify keeps the class of its requests. */
const FASTIFY_REQUEST = 'fastify.Request';

/**
 * Reads addresses by the framework's own `request.ip`: the handshake of a WebSocket never reaches the framework. Of a
 * framework other than Express and Fastify, it is the address of the connection, and clients behind a proxy are logged once.
 */
export function addressReader(adapter: FrameworkAdapter | undefined): ReadAddress {
  const instance = adapter?.getInstance() as object | undefined;
  if (instance !== undefined && adapter?.getType() === 'express') {
    const { request: prototype }: ExpressApp = instance;
    if (prototype !== undefined && 'ip' in prototype) {
      const app = { value: instance };
      return (request) => Reflect.get(prototype, 'ip', Object.create(request, { app })) as string | undefined;
    }
  }
  if (instance !== undefined && adapter?.getType() === 'fastify') {
    const prototype = requestsOf(instance);
    if (prototype !== undefined && 'ip' in prototype) {
      return (request) => Reflect.get(prototype, 'ip', Object.create(prototype, rawOf(request))) as string | undefined;
    }
  }
  const log = new OnceLogger(logger);
  return ({ headers, socket }) => {
    if (headers['x-forwarded-for'] !== undefined) log.warn(socketMessages.unknownAddresses());
    return socket.remoteAddress;
  };
}

function requestsOf(fastify: object): object | undefined {
  const key = Object.getOwnPropertySymbols(fastify).find(({ description }) => description === FASTIFY_REQUEST);
  const type = key && (fastify as Record<symbol, { readonly prototype?: object } | undefined>)[key];
  return type?.prototype;
}

function rawOf(request: IncomingMessage): PropertyDescriptorMap {
  return { raw: { value: request } };
}
