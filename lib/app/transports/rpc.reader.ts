import type { ExecutionContext } from '@nestjs/common';
import { asObject } from '../../engine/util/objects.js';
import type { ClientSocket } from './connection.js';
import { asMcpContext, mcpRefusal, refusalData } from './refusal.js';
import type { RequestLike, RequestParts, RequestReader } from './request-reader.js';
import { rethrow } from '../../engine/errors/reasons.js';

/** The members of a message's context that identify the client. */
interface MessageContext {
  /** Nest's TCP transport: the connection. */
  getSocketRef?(): { readonly netSocket?: ClientSocket };
  /** The request, for transports whose messages come over HTTP, such as `@rekog/mcp-nest`; otherwise `undefined`. */
  getRawRequest?(): unknown;
}

/** Messages and events of microservices. TCP has an address, and messages over HTTP have a request; message brokers have neither. */
export const rpcReader: RequestReader = {
  transport: 'rpc',

  read(context): RequestParts {
    const message = asObject<MessageContext>(context.getArgs()[1]);
    const socket = message?.getSocketRef?.().netSocket;
    if (socket !== undefined) return { request: { ip: socket.remoteAddress, socket } };
    const behind = asObject<RequestLike>(message?.getRawRequest?.());
    if (behind === undefined) return {};
    const { ip = behind.socket?.remoteAddress, headers, user } = behind;
    return { request: { ip, headers, user, socket: behind.socket } };
  },

  // An app's own transport may pass the same context with all messages. The array of arguments is the same in guards and interceptors.
  call: (context) => context.getArgs(),

  /** Returns an `RpcException`, whose data the client receives as the error, or a JSON-RPC error for an MCP client. */
  async refuse(exception, context) {
    if (hasNoCaller(context)) return exception;
    const { RpcException } = await import('@nestjs/microservices').catch(rethrow);
    const isMcp = asMcpContext(context.getArgs()[1]) !== undefined;
    const data = isMcp ? await mcpRefusal(exception) : refusalData(exception);
    return Object.assign(new RpcException(data), { cause: exception });
  },
};

/** The metadata key of event handlers, in Nest 11 and 12. */
const HANDLER_TYPE = 'microservices:handler_type';
const EVENT = 2;

/**
 * Returns true if no caller receives the error. For an event, Nest 12 logs each `RpcException` with all of its members, dozens of lines,
 * but no other HTTP exception. Only Kafka reacts to it: it delivers the event again.
 */
function hasNoCaller(context: ExecutionContext): boolean {
  if (Reflect.getMetadata(HANDLER_TYPE, context.getHandler()) !== EVENT) return false;
  const args: readonly unknown[] = context.getArgs();
  return !('getConsumer' in (asObject(args[1]) ?? {}));
}
