import { logger, OnceLogger } from '../../engine/errors/logger.js';
import { socketMessages } from '../../engine/errors/messages/sockets.js';
import { type FrameworkAdapter, frameworkAddress, type ReadAddress } from '../../app/transports/framework-address.js';

export type { FrameworkAdapter, ReadAddress };

/**
 * Reads addresses with the framework's own `request.ip`, because the handshake of a WebSocket never reaches the framework. For a framework
 * other than Express and Fastify, it returns the address of the connection, and logs clients behind a proxy once.
 */
export function addressReader(adapter: FrameworkAdapter | undefined): ReadAddress {
  const read = frameworkAddress(adapter);
  if (read !== undefined) return read;
  const log = new OnceLogger(logger);
  return ({ headers, socket }) => {
    if (headers['x-forwarded-for'] !== undefined) log.warn(socketMessages.unknownAddresses());
    return socket.remoteAddress;
  };
}
