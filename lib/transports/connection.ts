import { ServerResponse } from 'node:http';

/** The connection under a response: Node's own, which reports when the client goes away. */
export interface ClosableResponse {
  readonly destroyed?: boolean;
  once(event: 'close', listener: () => void): unknown;
}

/** What Node has besides. Over HTTP/2 only the stream of a response knows that it has been closed. */
interface NodeResponse extends ClosableResponse {
  readonly stream?: { readonly destroyed?: boolean };
  /** Nothing while a response waits behind those of earlier requests that its client sent on the same connection. */
  readonly socket?: object | null;
  readonly req?: { readonly socket?: ClosableResponse | null };
}

/** The socket under a request, as Node has it. */
export interface ClientSocket {
  /** The client's address. A socket of the Unix domain has none, and one whose client has reset the connection may have none. */
  readonly remoteAddress?: string | undefined;
  /** The server's own address, which shows that the socket has addresses. */
  readonly localAddress?: string | undefined;
  /** Whether it has been closed. */
  readonly destroyed?: boolean | undefined;
}

/** The listeners for the end of a connection. Node warns of many of its own, and a GraphQL request can have many calls. */
const closeListeners = new WeakMap<ClosableResponse, Set<() => void>>();

/** The connection that a response goes out on, if it is one of Node's. */
export function connectionOf(response: object | undefined): ClosableResponse | undefined {
  // Nearly always: to look for what an object does not have takes longer than all else.
  if (response instanceof ServerResponse) return response;
  // Fastify wraps the response, Express extends it.
  const { raw = response }: { raw?: unknown } = response ?? {};
  return isClosable(raw) ? raw : undefined;
}

/** Whether a response has been closed: it emits no `close` any more. */
export function isGone(connection: NodeResponse | undefined): boolean {
  if (connection === undefined) return false;
  if (connection.destroyed === true) return true;
  if (!(connection instanceof ServerResponse) && connection.stream?.destroyed === true) return true;
  return socketAhead(connection)?.destroyed === true;
}

/** The socket that a response waits for. If that closes before it is the response's turn, the response never emits `close`. */
function socketAhead({ socket, req }: NodeResponse): ClosableResponse | undefined {
  return socket === null ? (req?.socket ?? undefined) : undefined;
}

/**
 * Whether a socket has lost the address of its client: a client can send a request and reset its connection behind it, and then the
 * kernel has forgotten the address before the request is read. It still knows that of the server's end; a socket of the Unix domain
 * has none at either end.
 */
export function isLost(socket: ClientSocket | undefined): boolean {
  if (socket === undefined || socket === null || socket.remoteAddress !== undefined) return false;
  return socket.destroyed === true || socket.localAddress !== undefined;
}

/** Calls back once the connection closes. Returns a function that cancels that. */
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
