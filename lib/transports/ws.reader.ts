import { asObject } from '../util/as-object.js';
import type { ClientSocket } from './connection.js';
import { refusalData } from './refusal.js';
import type { RequestLike, RequestParts, RequestReader } from './request-reader.js';

/** What is read of a client of socket.io or ws. */
interface Client {
  readonly user?: unknown;
  readonly data?: { readonly user?: unknown };
  /** What socket.io keeps of the handshake. */
  readonly handshake?: { readonly address?: string; readonly headers?: RequestLike['headers'] };
  /** The request of the handshake: socket.io keeps it; with ws, the gateway can. */
  readonly request?: RequestLike;
  /** The connection, as ws names it. */
  readonly _socket?: ClientSocket;
}

/** Messages to gateways, of socket.io and ws. Address and headers are those of the handshake. */
export const wsReader: RequestReader = {
  transport: 'ws',

  read(context): RequestParts {
    const { user, data, handshake, request, _socket }: Client = asObject(context.getArgs()[0]) ?? {};
    const ip = request?.ip ?? handshake?.address ?? request?.socket?.remoteAddress ?? _socket?.remoteAddress;
    return {
      request: {
        ip,
        headers: handshake?.headers ?? request?.headers,
        user: user ?? data?.user ?? request?.user,
        // Once the handshake has given the address, its socket matters no more: a client that polls goes on by others.
        socket: ip === undefined ? (_socket ?? request?.socket) : undefined,
      },
    };
  },

  // The client stays the same; its message is another each time.
  call(context) {
    const args: readonly unknown[] = context.getArgs();
    return asObject(args[1]) ?? args;
  },

  /** A `WsException`, which Nest sends as the event `exception`. */
  async refuse(exception) {
    const { WsException } = await import('@nestjs/websockets');
    return Object.assign(new WsException(refusalData(exception)), { cause: exception });
  },
};
