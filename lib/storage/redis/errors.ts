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
import { redisMessages } from '../../engine/errors/messages/redis.js';

/** The code at the start of every error reply of Redis, such as `NOPERM`. Other errors of a client have none. */
const CODE = /^[A-Z][A-Z0-9]+ /;

/** Returns true if the server replied with an error, for example because of a missing permission. Otherwise the connection failed. */
export function isErrorReply(error: unknown): error is Error {
  const { name, message } = (error ?? {}) as { name?: unknown; message?: unknown };
  return name === 'ReplyError' || (typeof message === 'string' && CODE.test(message));
}

/** The message of an error. The error may come from another realm, as in a test runner. */
export function messageOf(error: unknown): string {
  return String((error as { message?: unknown } | null)?.message);
}

/** Reads a reply of fields and values: a list, or an object with RESP3. */
export function pairsOf(reply: unknown): [string, string][] {
  if (!Array.isArray(reply)) return Object.entries(reply as Record<string, string>);
  return Array.from({ length: reply.length / 2 }, (_, index) => [
    String(reply[2 * index]),
    String(reply[2 * index + 1]),
  ]);
}

/** A whole number from a connection that returns numbers as text. */
const TEXT = /^(?:0|-?[1-9]\d{0,15})$/;

/** Reads a whole number from a reply; `undefined` if it isn't one. */
export function readWholeNumber(given: unknown): number | undefined {
  const value = typeof given === 'string' && TEXT.test(given) ? Number(given) : given;
  return Number.isSafeInteger(value) ? (value as number) : undefined;
}

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

/** The last error of each connection that is down, such as a refused port or a wrong password. */
const lastErrors = new WeakMap<object, string>();

export function rememberError(client: object, { message }: Error): void {
  // A malformed host may contain a password.
  if (message !== '') lastErrors.set(client, withoutSecretsIn(message));
}

export function forgetError(client: object): void {
  lastErrors.delete(client);
}

/** The last error of a connection that is down. */
export function lastErrorOf(client: object): string | undefined {
  return lastErrors.get(client);
}

/** The error for a command on a connection that isn't ready. */
export function notConnected(client: Unready): RateLimitStoreError {
  const code = REJECTS_LOGIN.test(lastErrors.get(client) ?? '') ? 'SLUICE_REDIS_AUTH' : 'SLUICE_REDIS_UNREACHABLE';
  return new RateLimitStoreError(whyNotReady(client), { code });
}

/** The reason why a connection isn't ready, for messages: its state, and its last error if there was one. */
export function whyNotReady(client: Unready): string {
  const { status, stream } = client;
  const isInHandshake = stream?.secureConnecting === true && stream.connecting === false;
  return messages.storeNotReady(
    status,
    lastErrors.get(client) ?? (isInHandshake ? redisMessages.noHandshake() : undefined),
  );
}

interface Unready {
  readonly status: string;
  /** A TLS socket shows that it is connected and waits for the handshake, which a server without TLS never answers. */
  readonly stream?: { readonly connecting?: boolean; readonly secureConnecting?: boolean };
}
