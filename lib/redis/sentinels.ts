import { isIP } from 'node:net';
/** @ts-ignore ioredis need not be installed; where it is not, these types are `any`. */
import type { Redis } from 'ioredis';
import { withDeadline } from './deadline.js';
import { handleFloatingCommands } from './floating-commands.js';

/** The options of ioredis by which a connection finds its master. */
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

/** What is read of ioredis's connector: its own connections to Sentinels, which it gives no listener for errors. */
interface Connector {
  readonly failoverDetector?: { readonly sentinels?: readonly { readonly client: Redis }[] } | null;
}

const SENTINEL_PORT = 26379;

/**
 * The options of a connection by way of Sentinels, unless given: it hears of a failover at once. Without that, a master that froze gets
 * its connections back when it comes to, and takes what is lost as soon as it is demoted.
 */
export const HEARS_OF_FAILOVERS = { failoverDetector: true, sentinelReconnectStrategy: () => 1000 } as const;

function optionsOf(client: { readonly options: object }): SentinelOptions {
  return client.options;
}

/** Whether Sentinels say where the master is. */
export function hasSentinels(client: { readonly options: object }): boolean {
  return Boolean(optionsOf(client).sentinels);
}

/** Whether a connection stays with its master until that one is demoted, though Sentinels have named another one. */
export function missesFailovers(client: { readonly options: object }): boolean {
  return hasSentinels(client) && optionsOf(client).failoverDetector !== true;
}

/**
 * Keeps errors of the connections that listen to Sentinels from the console, and from ending the process: a Sentinel that is down is
 * tried again, and the others are heard.
 *
 * @returns a function that ends that, for a connection that stays in use
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

/** Ends the connections to Sentinels of a connection that has ended. */
export function endSentinels(client: Redis): void {
  if (hasSentinels(client)) client.disconnect();
}

/**
 * Asks the Sentinels whether the server that answers is their master, which it does not know itself until it is demoted. Never
 * rejects; `undefined` if they cannot tell in time, or there are none.
 */
export async function isMasterOfSentinels(client: Redis, timeoutMs: number): Promise<boolean | undefined> {
  const { sentinels, role } = optionsOf(client);
  if (!sentinels || role === 'slave' || client.status !== 'ready') return undefined;
  const inTime = <T>(answer: Promise<T>) => withDeadline(answer, timeoutMs).catch(() => undefined);
  const [info, ...named] = await Promise.all([
    inTime(client.info('server')),
    ...sentinels.map((each) => inTime(masterOf(client, each, timeoutMs))),
  ]);
  const own = /^run_id:(\w+)/m.exec(info ?? '')?.[1];
  const told = named.flatMap((master) => (master === undefined ? [] : (isSame(client, own, master) ?? [])));
  return told.length === 0 ? undefined : 2 * told.filter((same) => same).length >= told.length;
}

/** The master, as one Sentinel knows it. */
interface NamedMaster {
  /** Of its process; empty for some seconds after a failover. */
  readonly runId: string;
  readonly host: string;
  readonly port: number;
}

/** Whether a connection leads to a master. Until its process is known only its address tells, and not behind a translation. */
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
