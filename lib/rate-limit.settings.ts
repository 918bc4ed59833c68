import type { OnStoreError } from './algorithms/limit.js';
import { duration, givenOptions, oneOf, orElse, wholeNumber } from './algorithms/options.js';
import { RateLimitConfigError } from './errors/errors.js';
import { messages } from './errors/messages.js';
import { type HeaderFormatter, headerFormatters } from './http/header-format.js';
import type { OnMissingKey } from './limit-definition.js';
import { isClient, isClusterConnection } from './redis/client.js';
import type { RateLimitModuleOptions } from './rate-limit.options.js';

/** The module's options once they have been read and checked. */
export interface RateLimitSettings {
  readonly options: RateLimitModuleOptions;
  readonly formatters: readonly HeaderFormatter[];
  readonly onStoreError: OnStoreError;
  readonly onMissingKey: OnMissingKey;
  readonly ipv6Prefix: number;
  readonly timeoutMs: number;
  readonly prefix: string;
  readonly maxKeys: number;
  readonly refusalCache: boolean;
}

/** The token of the module's settings. */
export const RATE_LIMIT_SETTINGS = Symbol('RATE_LIMIT_SETTINGS');
/** The token of the connection that the store and the changed rates share; nothing without `redis`. */
export const RATE_LIMIT_REDIS = Symbol('RATE_LIMIT_REDIS');
/** The token of the store. */
export const RATE_LIMIT_STORE = Symbol('RATE_LIMIT_STORE');

export const ON_STORE_ERROR: readonly OnStoreError[] = ['local', 'allow', 'deny'];
export const ON_MISSING_KEY: readonly OnMissingKey[] = ['ip', 'skip', 'refuse'];

/** No request waits longer for its limits; and no timer can wait for more than 24 days. */
const MAX_TIMEOUT_MS = 3_600_000;

/** The options of ioredis that say which Redis is meant. */
const PLACES = ['host', 'port', 'path', 'sentinels', 'Connector', 'db', 'username', 'password', 'tls'];

const REDIS =
  "a URL such as 'redis://localhost:6379', ioredis options such as { host, port }, an ioredis connection, or { nodes } for a Cluster";

const PLACE = 'RateLimitModule';
const KNOWN: readonly (keyof RateLimitModuleOptions)[] = [
  'redis',
  'limits',
  'define',
  'headers',
  'timeout',
  'onStoreError',
  'onMissingKey',
  'ipv6Prefix',
  'prefix',
  'maxKeys',
  'refusalCache',
  'store',
];

/** Reads the module's options. The limits among them are compiled elsewhere. */
export function readSettings(written: RateLimitModuleOptions): RateLimitSettings {
  if (typeof written !== 'object' || written === null) {
    throw new RateLimitConfigError(messages.notOptions(PLACE, written));
  }
  for (const option of Object.keys(written)) {
    if (option === 'guard') throw new RateLimitConfigError(messages.misplacedGuard());
    if (!KNOWN.includes(option as keyof RateLimitModuleOptions)) {
      throw new RateLimitConfigError(messages.unknownOption(PLACE, option, KNOWN));
    }
  }
  const options = givenOptions(written, KNOWN);
  const { limits = [], define = {}, maxKeys = 100_000, prefix = 'sluice', store, redis, refusalCache = true } = options;
  wants('limits', limits, 'a list of limits', Array.isArray(limits));
  wants('define', define, 'an object of limits by their names', isRecord(define) && !Array.isArray(define));
  wants(
    'prefix',
    prefix,
    'a string that is not empty and holds no braces',
    typeof prefix === 'string' && /^[^{}]+$/.test(prefix),
  );
  wants('refusalCache', refusalCache, 'true or false', typeof refusalCache === 'boolean');
  wants('store', store, 'a Store', store === undefined || (isRecord(store) && typeof store.check === 'function'));
  wants('store', store, "to stand alone, without 'redis'", store === undefined || redis === undefined);
  const timeoutMs = duration(PLACE, 'timeout', orElse(options.timeout, 250)) / 1000;
  wants('timeout', options.timeout, 'at most 1 hour', timeoutMs <= MAX_TIMEOUT_MS);
  wants('redis', withoutSecrets(redis), REDIS, redis === undefined || isRedis(redis));
  return {
    options,
    formatters: headerFormatters(orElse(options.headers, 'draft-8'), PLACE),
    onStoreError: oneOf(PLACE, 'onStoreError', orElse(options.onStoreError, 'local'), ON_STORE_ERROR),
    onMissingKey: oneOf(PLACE, 'onMissingKey', orElse(options.onMissingKey, 'ip'), ON_MISSING_KEY),
    ipv6Prefix: wholeNumber(PLACE, 'ipv6Prefix', orElse(options.ipv6Prefix, 64), { max: 128 }),
    timeoutMs,
    prefix,
    refusalCache,
    maxKeys: wholeNumber(PLACE, 'maxKeys', maxKeys),
  };
}

function wants(option: string, got: unknown, wanted: string, right: boolean): void {
  if (!right) throw new RateLimitConfigError(messages.wrongOption(PLACE, option, got, wanted));
}

function isRedis(redis: unknown): boolean {
  if (typeof redis === 'string') return /^rediss?:$/.test(URL.canParse(redis) ? new URL(redis).protocol : '');
  if (!isRecord(redis)) return false;
  if (isClient(redis)) return true;
  if (isClusterConnection(redis)) return Array.isArray(redis.nodes) && redis.nodes.length > 0;
  return PLACES.some((option) => redis[option] !== undefined) && typeof redis['sendCommand'] !== 'function';
}

/** What is no connection, as it may be shown: a URL without what may be a password, or only the names of options. */
function withoutSecrets(redis: unknown): unknown {
  if (typeof redis === 'string') {
    return redis.replace(/^([a-z]+:\/\/)?.*@/is, '$1***@').replaceAll(/([?&]\w*pass\w*=)[^&]*/gi, '$1***');
  }
  if (Array.isArray(redis)) return redis.map(withoutSecrets);
  if (!isRecord(redis)) return redis;
  return Object.fromEntries(Object.keys(redis).map((option) => [option, '***']));
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
