import type { RateLimitErrorCode } from '../../engine/errors/codes.js';
import { RateLimitStoreError } from '../../engine/errors/errors.js';
import { messages } from '../../engine/errors/messages/general.js';
import { LACKS_A_RIGHT, REJECTS_LOGIN } from '../../engine/errors/lacks-a-right.js';
import { reasonOf } from '../../engine/util/reason-of.js';
import { withoutSecrets, withoutSecretsIn } from '../../engine/util/without-secrets.js';
import type { Connection } from './connection.js';

/** ioredis's messages for a command whose connection ended, or was already gone. */
const LOST =
  /^(?:Reached the max retries per request|Connection is closed|Command aborted due to connection close|Stream isn't writeable|Cluster isn't ready)/;

/** Wraps an error of a connection in a `RateLimitStoreError`. `server` is where it leads. */
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
  return path ?? (host === undefined ? undefined : `${String(withoutSecrets(host))}:${port}`);
}

/** The nodes that a Cluster of ioredis was given. */
interface Startup {
  readonly startupNodes?: readonly (string | number | Place)[];
}

/** Where a connection leads, for messages: that of a Cluster to the nodes it was given. Never with a password. */
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

/** The message of an error, with that of the node that failed last: the Cluster's own says nothing of it. */
export function connectionReason(error: Error & { readonly lastNodeError?: unknown }): string {
  const { message, lastNodeError } = error;
  return withoutSecretsIn(lastNodeError === undefined ? message : `${message} ${reasonOf(lastNodeError)}`);
}
