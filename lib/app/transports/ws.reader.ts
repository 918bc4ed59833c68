import type { ExecutionContext } from '@nestjs/common';
import { asObject } from '../../engine/util/objects.js';
import type { ClientSocket } from './connection.js';
import { refusalData } from './refusal.js';
import type { RequestLike, RequestParts, RequestReader } from './request-reader.js';
import { rethrow } from '../../engine/errors/reasons.js';

/** The members of a socket.io or ws client that are read. */
interface Client {
  readonly user?: unknown;
  readonly data?: { readonly user?: unknown };
  /** The handshake, as socket.io stores it. */
  readonly handshake?: { readonly address?: string; readonly headers?: RequestLike['headers'] };
  /** The request of the handshake. socket.io stores it; with ws, a gateway can. */
  readonly request?: RequestLike;
  /** The connection, under ws's name for it. */
  readonly _socket?: ClientSocket;
}

/** A ws client, with the interface of a browser's `WebSocket`. */
interface NativeClient {
  readonly readyState?: unknown;
  readonly send?: (text: string) => void;
}

/** Messages to gateways, over socket.io and ws. Address and headers come from the handshake. */
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
        // If the handshake contained the address, the socket isn't needed: a polling client opens new ones.
        socket: ip === undefined ? (_socket ?? request?.socket) : undefined,
      },
    };
  },

  // The client object is shared by all messages, but each message is a new object.
  call(context) {
    const args: readonly unknown[] = context.getArgs();
    return asObject(args[1]) ?? args;
  },

  /** Returns a `WsException`, which Nest sends as the event `exception`. */
  async refuse(exception, context) {
    const { BaseWsExceptionFilter, WsException } = await import('@nestjs/websockets').catch(rethrow);
    const data = refusalData(exception);
    if (!('emitMessage' in BaseWsExceptionFilter.prototype) && !hasFilters(context)) sendNatively(context, data);
    return Object.assign(new WsException(data), { cause: exception });
  },
};

/** The metadata key of `@UseFilters`, in Nest 11 and 12. */
export const FILTERS = '__exceptionFilters__';

/** Marks this library's own filter, which leaves the guard's rejections unchanged. */
export const OWN_FILTER = 'nestjs-sluice:filter';

/** Returns true if the app has bound filters to a gateway or its handler. */
function hasFilters(context: ExecutionContext): boolean {
  const targets = [context.getClass(), context.getHandler()] as (object | null)[];
  return targets.some((target) => {
    const bound = target === null ? undefined : (Reflect.getMetadata(FILTERS, target) as object[] | undefined);
    return bound?.some((each) => !isOwnFilter(each)) === true;
  });
}

function isOwnFilter(filter: object): boolean {
  return Reflect.getMetadata(OWN_FILTER, typeof filter === 'function' ? filter : filter.constructor) === true;
}

/**
 * Sends the event to a ws client. Nest 11 only emits it on the client object. That works for socket.io, but doesn't send anything with ws.
 */
function sendNatively(context: ExecutionContext, data: object): void {
  const client = asObject<NativeClient>(context.getArgs()[0]);
  if (typeof client?.readyState !== 'number' || typeof client.send !== 'function') return;
  client.send(JSON.stringify({ event: 'exception', data }));
}
