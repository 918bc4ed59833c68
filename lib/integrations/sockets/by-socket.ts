import { randomUUID } from 'node:crypto';
import type { ExecutionContext } from '@nestjs/common';

/** The client of a frame. A socket of socket.io refers to its connection, which has an id. */
interface Client {
  readonly conn?: { readonly id?: unknown };
  readonly id?: unknown;
}

/** The ids of connections that have no id of their own. */
const ids = new WeakMap<object, string>();

/**
 * Counts each connection separately, as the `key` of limits of frames and messages: `socket:<id>`. All namespaces of a socket.io connection
 * share one counter. A connection belongs to one process, so `scope: 'instance'` fits such limits.
 */
export function bySocket(context: ExecutionContext): string | undefined {
  const client = context.switchToWs().getClient<Client | undefined>();
  if (typeof client !== 'object' || client === null) return undefined;
  const id = client.conn?.id ?? client.id;
  if (typeof id === 'string') return `socket:${id}`;
  let own = ids.get(client);
  if (own === undefined) ids.set(client, (own = randomUUID()));
  return `socket:${own}`;
}
