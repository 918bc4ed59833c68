import { messages } from '../../engine/errors/messages/general.js';
import { redisMessages } from '../../engine/errors/messages/redis.js';
import { isClient } from '../../storage/redis/client.js';
import { isClusterConnection, refusalOf } from '../../storage/redis/given-connection.js';
import { isRecord } from './option-checks.js';

/** The options of ioredis of which one at least says where Redis is. */
const CONNECTION_OPTIONS = ['host', 'port', 'path', 'sentinels', 'Connector', 'db', 'username', 'password', 'tls'];

const CONNECTION_OF_ONE =
  "a URL such as 'redis://localhost:6379', ioredis options such as { host, port }, a connection of ioredis or node-redis";
const REDIS_CONNECTION = `${CONNECTION_OF_ONE}, or { nodes } for a Cluster`;
/** What the option wants; the home of regions is no Cluster. */
const WANTS = { redis: REDIS_CONNECTION, home: CONNECTION_OF_ONE } as const;

export function isRedisConnection(redis: unknown): boolean {
  if (typeof redis === 'string') return /^rediss?:$/.test(URL.canParse(redis) ? new URL(redis).protocol : '');
  if (!isRecord(redis) || refusalOf(redis) !== undefined) return false;
  if (isClient(redis)) return true;
  if (isClusterConnection(redis)) return Array.isArray(redis.nodes) && redis.nodes.length > 0;
  return CONNECTION_OPTIONS.some((option) => redis[option] !== undefined) && typeof redis['sendCommand'] !== 'function';
}

/** The message for something that is not a connection: what it is, if that can be told. */
export function wrongRedis(location: string, redis: unknown, option: keyof typeof WANTS = 'redis'): string {
  const refusal = refusalOf(redis);
  const wanted = WANTS[option];
  // Most likely an environment variable that is set to nothing.
  const wants = redis === '' && option === 'redis' ? `${wanted}; leave it out to count in the process` : wanted;
  return refusal === undefined
    ? messages.wrongOption(location, option, withoutSecrets(redis), wants)
    : redisMessages.unusable(location, refusal, wanted);
}

/** Hides possible passwords of a wrong connection: shows a URL without them, and of an object only the names of its options. */
export function withoutSecrets(redis: unknown): unknown {
  if (typeof redis === 'string') {
    return redis.replace(/^([a-z]+:\/\/)?.*@/is, '$1***@').replaceAll(/([?&]\w*pass\w*=)[^&]*/gi, '$1***');
  }
  if (Array.isArray(redis)) return redis.map(withoutSecrets);
  if (!isRecord(redis)) return redis;
  return Object.fromEntries(Object.keys(redis).map((option) => [option, '***']));
}
