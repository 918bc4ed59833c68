import { type RateLimitErrorCode, RateLimitStoreError } from '../../engine/errors/errors.js';
import { messages } from '../../engine/errors/messages/general.js';
import {
  LACKS_A_RIGHT,
  reasonOf,
  REJECTS_LOGIN,
  withoutSecrets,
  withoutSecretsIn,
} from '../../engine/errors/reasons.js';
import type { Connection } from './connection.js';

/** ioredis's messages for a command whose connection ended, or was already closed. */
const LOST =
  /^(?:Reached the max retries per request|Connection is closed|Command aborted due to connection close|Stream isn't writeable|Cluster isn't ready)/;

/** Wraps an error of a connection in a `RateLimitStoreError`. `server` is the address. */
export function asStoreError(error: unknown, server?: string): RateLimitStoreError {
  if (error instanceof RateLimitStoreError) return error;
  const reason = withoutSecretsIn(reasonOf(error));
  const message = LOST.test(reason) ? messages.connectionLost(server) : messages.storeFailed(reason);
  return new RateLimitStoreError(message, { cause: error, code: codeOf(reason) });
}

function codeOf(reason: string): RateLimitErrorCode {
  if (LOST.test(reason)) return 'SLUICE_REDIS_UNREACHABLE';
  if (LACKS_A_RIGHT.test(reason)) return 'SLUICE_REDIS_RIGHTS';
  return REJECTS_LOGIN.test(reason) ? 'SLUICE_REDIS_AUTH' : 'SLUICE_STORE_FAILED';
}

/** The client options that contain the address. */
interface Place {
  readonly host?: string;
  readonly port?: number;
  readonly path?: string;
  readonly name?: string;
  readonly sentinels?: readonly unknown[] | null;
}

/**
 * The address of a client for messages, without a password. In a Cluster, it comes from the node. A client that is only compatible with
 * ioredis may not reveal it.
 */
export function serverOf({
  isCluster,
  options,
}: Partial<Pick<Connection, 'isCluster' | 'options'>>): string | undefined {
  if (isCluster) return undefined;
  const { host, port, path, name, sentinels } = (options ?? {}) as Place;
  if (sentinels) return `the master '${name}' of the Sentinels`;
  return path ?? (host === undefined ? undefined : `${String(withoutSecrets(host))}:${port}`);
}

/** The nodes that an ioredis Cluster was created with. */
interface Startup {
  readonly startupNodes?: readonly (string | number | Place)[];
}

/** The addresses of a connection for messages, without a password. For a Cluster, the nodes that it was created with. */
export function addressesOf(connection: Connection): string {
  const server = serverOf(connection);
  if (server !== undefined) return server;
  const { startupNodes } = connection as Startup;
  if (!Array.isArray(startupNodes)) return 'its nodes';
  return (startupNodes as Startup['startupNodes'])!.map(nodeAddress).join(', ');
}

function nodeAddress(node: string | number | Place): string {
  if (typeof node === 'object') return `${String(withoutSecrets(node.host ?? '127.0.0.1'))}:${node.port ?? 6379}`;
  const text = String(node);
  return String(withoutSecrets(URL.canParse(text) ? new URL(text).host : (text.split('@').at(-1) ?? text)));
}

/** The message of an error, including that of the node that failed last, since the Cluster's own message lacks the reason. */
export function connectionReason(error: Error & { readonly lastNodeError?: unknown }): string {
  const { message, lastNodeError } = error;
  return withoutSecretsIn(lastNodeError === undefined ? message : `${message} ${reasonOf(lastNodeError)}`);
}
