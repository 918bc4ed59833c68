import { type OnStoreError, STORE_ERROR_POLICIES } from '../limits/compiled-limit.js';
import { duration, givenOptions, oneOf, orElse, wholeNumber } from '../algorithms/options.js';
import { RateLimitConfigError } from '../errors/errors.js';
import { messages } from '../errors/messages.js';
import { type HeaderFormatter, headerFormatters } from '../http/header-format.js';
import type { RefusalBody } from '../http/refusal-answer.js';
import type { OnMissingKey } from './limit-definition.js';
import { isClient, isClusterConnection } from '../redis/client.js';
import { defaultMaxBytes } from '../stores/memory/counter-table.js';
import type { RateLimitModuleOptions } from './module-options.js';

/** The module's options once they have been read and checked. */
export interface RateLimitSettings {
  readonly options: RateLimitModuleOptions;
  readonly formatters: readonly HeaderFormatter[];
  readonly exposeHeaders: boolean;
  readonly retryJitter: number;
  readonly problem: boolean;
  readonly body: RefusalBody | undefined;
  readonly onStoreError: OnStoreError;
  readonly localShare: number;
  readonly onMissingKey: OnMissingKey;
  readonly ipv6Prefix: number;
  readonly timeoutMs: number;
  readonly prefix: string;
  readonly maxKeys: number;
  readonly maxBytes: number;
  readonly refusalCache: boolean;
  /** Nothing if it depends on what is installed. */
  readonly telemetry: boolean | undefined;
  /** Whether `RATE_LIMIT_MODE` makes every limit a shadow. */
  readonly shadow: boolean;
}

export const ON_MISSING_KEY: readonly OnMissingKey[] = ['ip', 'skip', 'refuse'];

/** No request waits longer for its limits; and no timer can wait for more than 24 days. */
const MAX_TIMEOUT_MS = 3_600_000;

/** The options of ioredis that say which Redis is meant. */
const PLACES = ['host', 'port', 'path', 'sentinels', 'Connector', 'db', 'username', 'password', 'tls'];

const REDIS =
  "a URL such as 'redis://localhost:6379', ioredis options such as { host, port }, an ioredis connection, or { nodes } for a Cluster";

const PLACE = 'RateLimitModule';
/** The variable of the environment that makes every limit a shadow. */
const MODE_VARIABLE = 'RATE_LIMIT_MODE';
const KNOWN: readonly (keyof RateLimitModuleOptions)[] = [
  'redis',
  'limits',
  'define',
  'defaults',
  'headers',
  'exposeHeaders',
  'retryJitter',
  'problem',
  'body',
  'timeout',
  'onStoreError',
  'localShare',
  'onMissingKey',
  'ipv6Prefix',
  'prefix',
  'maxKeys',
  'maxBytes',
  'refusalCache',
  'telemetry',
  'store',
  'readers',
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
  const {
    limits = [],
    define = {},
    maxKeys = 100_000,
    prefix = 'sluice',
    store,
    redis,
    refusalCache = true,
    telemetry,
    readers = [],
    defaults = {},
    exposeHeaders = true,
  } = options;
  const { retryJitter = 0, problem = false, body } = options;
  wants('limits', limits, 'a list of limits', Array.isArray(limits));
  wants('define', define, 'an object of limits by their names', isRecord(define) && !Array.isArray(define));
  wants('defaults', defaults, 'an object of options of limits', isRecord(defaults) && !Array.isArray(defaults));
  wants('exposeHeaders', exposeHeaders, 'true or false', typeof exposeHeaders === 'boolean');
  wants(
    'prefix',
    prefix,
    'a string that is not empty and holds no braces',
    typeof prefix === 'string' && /^[^{}]+$/.test(prefix),
  );
  wants('retryJitter', retryJitter, 'a number from 0 to 1', isShare(retryJitter));
  wants('problem', problem, 'true or false', typeof problem === 'boolean');
  wants('body', body, 'a function that makes an object', body === undefined || typeof body === 'function');
  wants('refusalCache', refusalCache, 'true or false', typeof refusalCache === 'boolean');
  wants('readers', readers, 'a list of RequestReaders', Array.isArray(readers));
  wants('telemetry', telemetry, 'true or false', telemetry === undefined || typeof telemetry === 'boolean');
  wants('store', store, 'a Store', store === undefined || (isRecord(store) && typeof store.check === 'function'));
  wants('store', store, "to stand alone, without 'redis'", store === undefined || redis === undefined);
  const localShare = orElse(options.localShare, 1);
  wants('localShare', localShare, 'a share, more than 0 and at most 1', localShare > 0 && localShare <= 1);
  const timeoutMs = duration(PLACE, 'timeout', orElse(options.timeout, 250)) / 1000;
  wants('timeout', options.timeout, 'at most 1 hour', timeoutMs <= MAX_TIMEOUT_MS);
  wants('redis', withoutSecrets(redis), REDIS, redis === undefined || isRedis(redis));
  return {
    options,
    formatters: headerFormatters(orElse(options.headers, 'draft-8'), PLACE),
    exposeHeaders,
    retryJitter,
    problem,
    body,
    onStoreError: storeErrorPolicy(PLACE, orElse(options.onStoreError, 'local')),
    localShare,
    onMissingKey: oneOf(PLACE, 'onMissingKey', orElse(options.onMissingKey, 'ip'), ON_MISSING_KEY),
    ipv6Prefix: wholeNumber(PLACE, 'ipv6Prefix', orElse(options.ipv6Prefix, 64), { max: 128 }),
    timeoutMs,
    prefix,
    refusalCache,
    telemetry,
    shadow: readsShadow(process.env[MODE_VARIABLE]),
    maxKeys: wholeNumber(PLACE, 'maxKeys', maxKeys),
    maxBytes: wholeNumber(PLACE, 'maxBytes', orElse(options.maxBytes, defaultMaxBytes(maxKeys))),
  };
}

/** Reads `onStoreError`. */
export function storeErrorPolicy(location: string, value: unknown): OnStoreError {
  if (typeof value === 'function') return value as OnStoreError;
  if (STORE_ERROR_POLICIES.includes(value as never)) return value as OnStoreError;
  const wanted = `one of ${STORE_ERROR_POLICIES.join(', ')}, or a function that gives one`;
  throw new RateLimitConfigError(messages.wrongOption(location, 'onStoreError', value, wanted));
}

function wants(option: string, got: unknown, wanted: string, right: boolean): void {
  if (!right) throw new RateLimitConfigError(messages.wrongOption(PLACE, option, got, wanted));
}

/** `enforce` lets each limit do what its own `mode` says. */
function readsShadow(mode = ''): boolean {
  if (!['', 'enforce', 'shadow'].includes(mode))
    throw new RateLimitConfigError(messages.wrongMode(MODE_VARIABLE, mode));
  return mode === 'shadow';
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

function isShare(value: unknown): boolean {
  return typeof value === 'number' && value >= 0 && value <= 1;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
