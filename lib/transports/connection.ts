/** The connection under a response: Node's own, which says when the client goes away. */
export interface ClosableResponse {
  readonly destroyed?: boolean;
  once(event: 'close', listener: () => void): unknown;
}

/** Who waits for a connection to close. Node warns of many listeners, and a GraphQL request can have many calls. */
const waiting = new WeakMap<ClosableResponse, Set<() => void>>();

/** The connection that a response goes out on, if it is one of Node's. */
export function connectionOf(response: object | undefined): ClosableResponse | undefined {
  // Fastify wraps the response, Express extends it.
  const { raw = response }: { raw?: unknown } = response ?? {};
  return isClosable(raw) ? raw : undefined;
}

/** Whether a response has been closed, so that it will not say so any more. Over HTTP/2 only its stream knows. */
export function isGone(connection: (ClosableResponse & { stream?: { destroyed?: boolean } }) | undefined): boolean {
  return connection?.destroyed === true || connection?.stream?.destroyed === true;
}

/** Calls back once the connection closes. Returns what ends that. */
export function onClose(connection: ClosableResponse, listener: () => void): () => void {
  let listeners = waiting.get(connection);
  if (listeners === undefined) {
    const all = (listeners = new Set());
    waiting.set(connection, all);
    connection.once('close', () => {
      for (const each of all) each();
    });
  }
  const all = listeners.add(listener);
  return () => void all.delete(listener);
}

function isClosable(value: unknown): value is ClosableResponse {
  return typeof value === 'object' && value !== null && 'once' in value && typeof value.once === 'function';
}
