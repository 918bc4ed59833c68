import { ServerResponse } from 'node:http';

/** The connection of a response, as Node provides it. It reports when the client disconnects. */
export interface ClosableResponse {
  readonly destroyed?: boolean;
  once(event: 'close', listener: () => void): unknown;
}

/** The additional members of Node's responses. For HTTP/2, only the stream of a response shows that it has been closed. */
interface NodeResponse extends ClosableResponse {
  readonly stream?: { readonly destroyed?: boolean };
  /** `null` while the response waits for those to earlier requests on the same connection (pipelining). */
  readonly socket?: object | null;
  readonly req?: { readonly socket?: ClosableResponse | null };
}

/** The socket of a request, as Node provides it. */
export interface ClientSocket {
  /** The client's address. A Unix domain socket has none, and a socket that the client has reset may have lost it. */
  readonly remoteAddress?: string | undefined;
  /** The server's own address. If present, the socket has addresses. */
  readonly localAddress?: string | undefined;
  /** True if it has been closed. */
  readonly destroyed?: boolean | undefined;
}

/**
 * The close listeners of connections. They share one Node listener, since Node warns about many, and a GraphQL request can have many calls.
 */
const closeListeners = new WeakMap<ClosableResponse, Set<() => void>>();

/** The connection of a response, if it is one of Node's. */
export function connectionOf(response: object | undefined): ClosableResponse | undefined {
  // The usual case comes first, because looking up a property that an object lacks is slow.
  if (response instanceof ServerResponse) return response;
  // Fastify wraps the response, Express extends it.
  const { raw = response }: { raw?: unknown } = response ?? {};
  return isClosable(raw) ? raw : undefined;
}

/** Returns true if a response has been closed, so that it won't emit `close` any more. */
export function isGone(connection: NodeResponse | undefined): boolean {
  if (connection === undefined) return false;
  if (connection.destroyed === true) return true;
  if (!(connection instanceof ServerResponse) && connection.stream?.destroyed === true) return true;
  return socketAhead(connection)?.destroyed === true;
}

/** The socket that a pipelined response waits for. If it closes before the response's turn, the response never emits `close`. */
function socketAhead({ socket, req }: NodeResponse): ClosableResponse | undefined {
  return socket === null ? (req?.socket ?? undefined) : undefined;
}

/**
 * Returns true if a socket has lost its client's address. If a client sends a request and then resets the connection, the kernel drops the
 * address before the request is read, but keeps that of the server's end. A Unix domain socket has neither.
 */
export function isLost(socket: ClientSocket | undefined): boolean {
  if (socket === undefined || socket === null || socket.remoteAddress !== undefined) return false;
  return socket.destroyed === true || socket.localAddress !== undefined;
}

/** Calls back once the connection closes. Returns a function that unsubscribes. */
export function onClose(connection: ClosableResponse, listener: () => void): () => void {
  let listeners = closeListeners.get(connection);
  if (listeners === undefined) {
    const all = (listeners = new Set());
    closeListeners.set(connection, all);
    const notify = () => {
      const notified = [...all];
      all.clear();
      for (const each of notified) each();
    };
    const ahead = socketAhead(connection);
    const forget = ahead === undefined ? undefined : onClose(ahead, notify);
    connection.once('close', () => {
      forget?.();
      notify();
    });
  }
  const all = listeners.add(listener);
  return () => void all.delete(listener);
}

function isClosable(value: unknown): value is ClosableResponse {
  return typeof value === 'object' && value !== null && 'once' in value && typeof value.once === 'function';
}
