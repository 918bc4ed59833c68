import { messages } from '../../engine/errors/messages/general.js';
import { redisMessages } from '../../engine/errors/messages/redis.js';
import { isClient } from '../../storage/redis/client.js';
import { isClusterConnection, refusalOf } from '../../storage/redis/given-connection.js';
import { isRecord } from '../../engine/util/objects.js';
import { withoutSecrets } from '../../engine/errors/reasons.js';

/** The ioredis options that tell where Redis is. At least one of them is required. */
const CONNECTION_OPTIONS = ['host', 'port', 'path', 'sentinels', 'Connector', 'db', 'username', 'password', 'tls'];

const CONNECTION_OF_ONE =
  "a URL such as 'redis://localhost:6379', ioredis options such as { host, port }, a connection of ioredis or node-redis";
const REDIS_CONNECTION = `${CONNECTION_OF_ONE}, or { nodes } for a Cluster`;
/** The expected values of the option; a region's home cannot be a Cluster. */
const EXPECTED = { redis: REDIS_CONNECTION, home: CONNECTION_OF_ONE } as const;

export function isRedisConnection(redis: unknown): boolean {
  if (typeof redis === 'string') return isRedisUrl(redis);
  if (!isRecord(redis) || refusalOf(redis) !== undefined) return false;
  if (isClient(redis)) return true;
  if (isClusterConnection(redis)) return Array.isArray(redis.nodes) && redis.nodes.length > 0;
  return CONNECTION_OPTIONS.some((option) => redis[option] !== undefined) && typeof redis['sendCommand'] !== 'function';
}

function isRedisUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname, pathname } = new URL(text);
  // The text after a comma isn't part of the address. It may be a password.
  return /^rediss?:$/.test(protocol) && !/[,;]/.test(hostname + pathname);
}

/** The connection string that Azure's portal shows and .NET clients use: `host:6380,password=…,ssl=True`. */
const OF_DOT_NET = /^(?:(rediss?):\/\/)?([\w.-]+)(?::(\d{1,5}))?(?:\/\d*)?\s*[,;](.*=.*)$/is;

/** The URL to use instead of a connection string of another form, without its password; `undefined` for unknown forms. */
export function urlFormOf(text: string): string | undefined {
  const [, scheme, host, port = '6379', options] = OF_DOT_NET.exec(text) ?? [];
  if (options === undefined) return undefined;
  const isTls = scheme?.toLowerCase() === 'rediss' || /(?:^|[,;])\s*(?:ssl|tls)\s*=\s*true\b/i.test(options);
  const [, user = ''] = /(?:^|[,;])\s*user(?:name)?\s*=\s*([\w.-]+)/i.exec(options) ?? [];
  const hasPassword = /(?:pass|pwd|key)\w*\s*=/i.test(options);
  return `${isTls ? 'rediss' : 'redis'}://${hasPassword ? `${user}:<password>@` : ''}${host}:${port}`;
}

/** The message for a value that isn't a connection. It names the form of the value if it is known. */
export function wrongRedis(location: string, redis: unknown, option: keyof typeof EXPECTED = 'redis'): string {
  const refusal = refusalOf(redis);
  const url = typeof redis === 'string' ? urlFormOf(redis) : undefined;
  const expected = url === undefined ? EXPECTED[option] : redisMessages.urlExpected(url);
  if (refusal !== undefined) return redisMessages.unusable(location, refusal, expected);
  const message = messages.wrongOption(location, option, withoutSecrets(redis), expected);
  // Most likely an environment variable that is empty.
  return redis === '' && option === 'redis' ? redisMessages.orLeftOut(message) : message;
}
