import { isIP } from 'node:net';
/** @ts-ignore ioredis is optional; without it, these types are `any`. */
import type { Redis } from 'ioredis';
import type { Server } from './connection.js';
import { withDeadline } from './deadline.js';
import { handleFloatingCommands } from './floating-commands.js';

/** The ioredis options for finding the master of a connection. */
interface SentinelOptions {
  readonly sentinels?: readonly { readonly host?: string; readonly port?: number }[] | null;
  readonly name?: string;
  readonly role?: string;
  readonly failoverDetector?: boolean;
  readonly sentinelUsername?: string | null;
  readonly sentinelPassword?: string | null;
  readonly sentinelTLS?: object;
  readonly natMap?: unknown;
}

/** The part of ioredis's connector that the library uses: its connections to Sentinels, which have no error listener. */
interface Connector {
  failoverDetector?: {
    readonly sentinels?: readonly { readonly client: Redis }[];
    /** Ends these connections, and ignores their errors. */
    cleanup?(): void;
  } | null;
}

const SENTINEL_PORT = 26379;

/**
 * Options of a connection through Sentinels, unless the app sets them, so that it notices a failover immediately. Without them, connections
 * return to a frozen master when it recovers, and it accepts writes that are lost as soon as it is demoted. And if a Sentinel freezes as
 * well, for example on the same host, the search for the next master would wait for it forever.
 */
export const HEARS_OF_FAILOVERS = {
  failoverDetector: true,
  sentinelReconnectStrategy: () => 1000,
  sentinelCommandTimeout: 1000,
} as const;

function optionsOf(client: { readonly options: object }): SentinelOptions {
  return client.options;
}

/** Returns true if Sentinels determine the master. */
export function hasSentinels(client: { readonly options: object }): boolean {
  return Boolean(optionsOf(client).sentinels);
}

/** Returns true if a connection stays with its master until that is demoted, even after Sentinels have named another one. */
export function missesFailovers(client: { readonly options: object }): boolean {
  return hasSentinels(client) && optionsOf(client).failoverDetector !== true;
}

/**
 * Keeps errors of the connections to Sentinels out of the console, and from ending the process. ioredis retries a Sentinel that is down,
 * and still listens to the others.
 *
 * @returns a function that stops this, for a connection that stays in use
 */
export function ignoreSentinelErrors(client: Redis): () => void {
  if (!hasSentinels(client)) return () => undefined;
  const seen = new WeakSet<Redis>();
  const ignoreErrors = () => {
    const { connector } = client as unknown as { readonly connector?: Connector };
    for (const { client: sentinel } of connector?.failoverDetector?.sentinels ?? []) {
      if (seen.has(sentinel)) continue;
      seen.add(sentinel);
      sentinel.on('error', () => undefined);
      handleFloatingCommands(sentinel);
    }
  };
  ignoreErrors();
  client.on('connect', ignoreErrors);
  return () => client.off('connect', ignoreErrors);
}

/**
 * Stops listening to Sentinels when a connection closes. The connection then searches for its master again, and listens again once it is
 * connected. If a failover is published during that search, ioredis would abort it and never retry.
 *
 * @returns a function that stops this, for a connection that stays in use
 */
export function outliveFailovers(client: Redis): () => void {
  if (!hasSentinels(client)) return () => undefined;
  const stopListening = () => {
    const { connector } = client as unknown as { readonly connector?: Connector };
    if (!connector?.failoverDetector) return;
    connector.failoverDetector.cleanup?.();
    // If they were ended again, their closed sockets would each get another listener, and a timer that keeps the process alive.
    connector.failoverDetector = null;
  };
  client.on('close', stopListening);
  return () => client.off('close', stopListening);
}

/** Ends the connections to Sentinels after a connection has ended. */
export function endSentinels(client: Server): void {
  if (hasSentinels(client)) client.disconnect();
}

/**
 * Resolves to true if the Sentinels name the connected server as their master; the server itself doesn't know until it is demoted. Never
 * rejects; resolves to `undefined` if no Sentinel answers in time, or there are none.
 */
export async function isMasterOfSentinels(connection: Server, timeoutMs: number): Promise<boolean | undefined> {
  if (!hasSentinels(connection)) return undefined;
  const client = connection as unknown as Redis;
  const { sentinels, role } = optionsOf(client);
  if (role === 'slave' || client.status !== 'ready') return undefined;
  const inTime = <T>(answer: Promise<T>) => withDeadline(answer, timeoutMs).catch(() => undefined);
  const [info, ...named] = await Promise.all([
    inTime(client.info('server')),
    ...sentinels!.map((each) => inTime(masterOf(client, each, timeoutMs))),
  ]);
  const own = /^run_id:(\w+)/m.exec(info ?? '')?.[1];
  const answers = named.flatMap((master) => (master === undefined ? [] : (isSame(client, own, master) ?? [])));
  return answers.length === 0 ? undefined : 2 * answers.filter((same) => same).length >= answers.length;
}

/** The master that one Sentinel reports. */
interface NamedMaster {
  /** The run id of its process; empty for some seconds after a failover. */
  readonly runId: string;
  readonly host: string;
  readonly port: number;
}

/**
 * Returns true if a connection leads to this master. Until the run id is known, only the address is compared, which doesn't work with
 * address translation.
 */
function isSame(client: Redis, own: string | undefined, { runId, host, port }: NamedMaster): boolean | undefined {
  if (own === undefined) return undefined;
  if (runId !== '') return runId === own;
  const { remoteAddress, remotePort } = client.stream;
  if (isIP(host) === 0 || remoteAddress === undefined || optionsOf(client).natMap) return undefined;
  return remoteAddress.replace(/^::ffff:/, '') === host && remotePort === port;
}

async function masterOf(
  client: Redis,
  { host = '127.0.0.1', port = SENTINEL_PORT }: { readonly host?: string; readonly port?: number },
  timeoutMs: number,
): Promise<NamedMaster> {
  const { name, sentinelUsername, sentinelPassword, sentinelTLS } = optionsOf(client);
  const options = {
    host,
    port,
    sentinels: null,
    username: sentinelUsername ?? null,
    password: sentinelPassword ?? null,
    tls: sentinelTLS,
    db: 0,
    keyPrefix: '',
    protocol: 2,
    replyMapping: 'legacy',
    connectTimeout: timeoutMs,
    enableOfflineQueue: true,
    enableReadyCheck: false,
    lazyConnect: true,
    maxRetriesPerRequest: 0,
    readOnly: false,
    retryStrategy: () => null,
  };
  const sentinel = client.duplicate(options as unknown as Parameters<Redis['duplicate']>[0]);
  sentinel.on('error', () => undefined);
  try {
    const fields = (await withDeadline(sentinel.call('SENTINEL', 'MASTER', name!), timeoutMs)) as unknown[];
    const field = (of: string) => String(fields[fields.indexOf(of) + 1]);
    return { runId: field('runid'), host: field('ip'), port: Number(field('port')) };
  } finally {
    sentinel.disconnect();
  }
}
