import { asObject } from './as-object.js';
import type { ClientSocket } from './connection.js';
import { refusalData } from './refusal.js';
import type { RequestParts, RequestReader } from './request-reader.js';

/** Nest's context of a message over TCP; other transports know no connection of the client's. */
interface TcpContext {
  getSocketRef?(): { readonly netSocket?: ClientSocket };
}

/** Messages and events of microservices. Only TCP has an address. */
export const rpcReader: RequestReader = {
  transport: 'rpc',

  read(context): RequestParts {
    const socket = asObject<TcpContext>(context.getArgs()[1])?.getSocketRef?.().netSocket;
    return socket === undefined ? {} : { request: { ip: socket.remoteAddress, socket } };
  },

  call(context) {
    const args: readonly unknown[] = context.getArgs();
    return asObject(args[1]) ?? args;
  },

  /** An `RpcException`, whose data the client gets as the error. */
  async refuse(exception) {
    const { RpcException } = await import('@nestjs/microservices');
    return Object.assign(new RpcException(refusalData(exception)), { cause: exception });
  },
};
