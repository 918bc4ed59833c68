import { RateLimitStoreError } from '../errors/errors.js';
import { messages } from '../errors/messages/general.js';
import { reasonOf } from '../util/reason-of.js';
import type { Connection } from './connection.js';

/** ioredis's messages for a command whose connection ended, or was already gone. */
const LOST =
  /^(?:Reached the max retries per request|Connection is closed|Command aborted due to connection close|Stream isn't writeable|Cluster isn't ready)/;

/** Wraps an error of a connection in a `RateLimitStoreError`. `server` is where it leads. */
export function asStoreError(error: unknown, server?: string): RateLimitStoreError {
  if (error instanceof RateLimitStoreError) return error;
  const reason = reasonOf(error);
  const message = LOST.test(reason) ? messages.connectionLost(server) : messages.storeFailed(reason);
  return new RateLimitStoreError(message, { cause: error });
}

/** The client options that show where it connects. */
interface Place {
  readonly host?: string;
  readonly port?: number;
  readonly path?: string;
  readonly name?: string;
  readonly sentinels?: readonly unknown[] | null;
}

/**
 * Where a client connects, for messages: never with a password. In a Cluster, the node shows it. A client that only behaves like
 * ioredis may not show it.
 */
export function serverOf({
  isCluster,
  options,
}: Partial<Pick<Connection, 'isCluster' | 'options'>>): string | undefined {
  if (isCluster) return undefined;
  const { host, port, path, name, sentinels } = (options ?? {}) as Place;
  if (sentinels) return `the master '${name}' of the Sentinels`;
  return path ?? (host === undefined ? undefined : `${host}:${port}`);
}
