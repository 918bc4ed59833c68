import { configError, RateLimitConfigError } from '../../engine/errors/errors.js';
import { messages } from '../../engine/errors/messages/general.js';
import { codeOfWrong, optionMessages } from '../../engine/errors/messages/options.js';
import { regionMessages } from '../../engine/errors/messages/redis.js';
import {
  checkValue,
  duration,
  oneOf,
  refuseUnknown,
  wholeNumber,
  wrongOption,
} from '../../engine/options/check-options.js';
import {
  type Duration,
  givenOptions,
  isObject,
  isObjectOfOptions,
  longDuration,
  milliseconds,
  orElse,
} from '../../engine/options/values.js';
import { defaultMaxBytes } from '../../storage/stores/memory/counter-table.js';
import { type HeaderFormatter, headerFormatters } from '../http/header-format.js';
import type { RefusalBody } from '../http/refusal-answer.js';
import type { OnStoreError } from '../../engine/limits/limit-settings.js';
import type { OnMissingKey, OnMissingReader } from './common-limit-options.js';
import { MODULE_OPTIONS, OPTION_CHECKS } from './module-option-checks.js';
import type { RateLimitModuleOptions, RegionOptions } from './module-options.js';
import { limitOptions, ownerOfOption } from './limit-options.js';
import { isRedisConnection, wrongRedis } from './redis-option.js';

/** The module's options after reading and checking. */
export interface RateLimitSettings {
  readonly options: RateLimitModuleOptions;
  readonly formatters: readonly HeaderFormatter[];
  readonly exposeHeaders: boolean;
  readonly retryJitter: number;
  readonly problem: boolean;
  readonly body: RefusalBody | undefined;
  readonly retryAfter: boolean;
  readonly onStoreError: OnStoreError;
  readonly localShare: number;
  readonly onMissingKey: OnMissingKey;
  readonly onMissingReader: OnMissingReader;
  readonly ipv6Prefix: number;
  readonly timeoutMs: number;
  /** The region in which the app runs, if there are several. */
  readonly regions: RegionOptions | undefined;
  /** The maximum time that a request waits for a function or class that finds its limits. */
  readonly resolveTimeoutMs: number;
  /** 0 never waits. */
  readonly gatherMs: number;
  /** `Infinity` waits for slow clients indefinitely. */
  readonly sendTimeoutMs: number;
  readonly prefix: string;
  readonly maxKeys: number;
  readonly maxWaiters: number;
  readonly maxBytes: number;
  readonly refusalCache: boolean;
  /** With `undefined`, decisions are measured if OpenTelemetry is installed. */
  readonly telemetry: boolean | undefined;
  /** True if `RATE_LIMIT_MODE` puts every limit into shadow mode. */
  readonly shadow: boolean;
}

const ON_MISSING_KEY: readonly OnMissingKey[] = ['ip', 'skip', 'refuse'];
const ON_MISSING_READER: readonly OnMissingReader[] = ['refuse', 'skip'];

/** The maximum of `timeout` and `resolveTimeout`. */
const MAX_TIMEOUT_MS = 3_600_000;

/** The maximum of `gather`, and the value that `true` means. */
const MAX_GATHER_MS = 100;
const USUAL_GATHER_MS = 1;

const LOCATION = 'RateLimitModule';

/** The environment variable that puts every limit into shadow mode. */
const MODE_VARIABLE = 'RATE_LIMIT_MODE';

/** Reads the module's options. The limits in them are compiled elsewhere. */
export function readSettings(written: RateLimitModuleOptions): RateLimitSettings {
  const given: unknown = written;
  if (!isObjectOfOptions(given)) {
    throw new RateLimitConfigError(optionMessages.hinted(messages.notOptions(LOCATION, written), written));
  }
  if (Object.hasOwn(written, 'guard')) throw configError('SLUICE_MISPLACED_OPTION', messages.misplacedGuard());
  refuseUnknown(LOCATION, written, [...MODULE_OPTIONS, 'guard'], ownerOfOption);
  const options = givenOptions(written, MODULE_OPTIONS);
  for (const [option, expected, isValid] of OPTION_CHECKS) {
    const value = options[option];
    if (value !== undefined && !isValid(value)) throw wrong(option, value, expected);
  }
  const { store, redis, maxKeys = 100_000, maxWaiters = 10_000, timeout = 250 } = options;
  if (store !== undefined && redis !== undefined)
    throw wrong('store', store, "no 'redis' next to it", 'SLUICE_EXCLUDED_OPTIONS');
  if (redis !== undefined && !isRedisConnection(redis)) {
    throw configError('SLUICE_INVALID_REDIS', wrongRedis(LOCATION, redis));
  }
  const timeoutMs = timeLimit('timeout', timeout);
  const onStoreError: OnStoreError = orElse(options.onStoreError, 'local');
  checkValue(LOCATION, 'onStoreError', onStoreError, limitOptions.onStoreError.kind);
  return {
    options,
    formatters: headerFormatters(orElse(options.headers, 'draft-8'), LOCATION),
    exposeHeaders: orElse(options.exposeHeaders, true),
    retryJitter: orElse(options.retryJitter, 0),
    problem: orElse(options.problem, false),
    body: options.body,
    retryAfter: orElse(options.retryAfter, true),
    onStoreError,
    localShare: orElse(options.localShare, 1),
    onMissingKey: oneOf(LOCATION, 'onMissingKey', orElse(options.onMissingKey, 'ip'), ON_MISSING_KEY),
    onMissingReader: oneOf(LOCATION, 'onMissingReader', orElse(options.onMissingReader, 'refuse'), ON_MISSING_READER),
    ipv6Prefix: wholeNumber(LOCATION, 'ipv6Prefix', orElse(options.ipv6Prefix, 64), { max: 128 }),
    timeoutMs,
    regions: readRegions(options.regions, redis !== undefined, timeoutMs),
    resolveTimeoutMs: timeLimit('resolveTimeout', orElse(options.resolveTimeout, 2000)),
    gatherMs: gatherMs(options.gather, timeoutMs),
    sendTimeoutMs: sendTimeoutMs(options.sendTimeout),
    prefix: orElse(options.prefix, 'sluice'),
    refusalCache: orElse(options.refusalCache, true),
    telemetry: options.telemetry,
    shadow: readsShadow(process.env[MODE_VARIABLE]),
    maxKeys: wholeNumber(LOCATION, 'maxKeys', maxKeys),
    maxWaiters: wholeNumber(LOCATION, 'maxWaiters', maxWaiters),
    maxBytes: wholeNumber(LOCATION, 'maxBytes', orElse(options.maxBytes, defaultMaxBytes(maxKeys))),
  };
}

function timeLimit(option: 'timeout' | 'resolveTimeout', value: Duration): number {
  const ms = duration(LOCATION, option, value) / 1000;
  if (ms > MAX_TIMEOUT_MS) throw wrong(option, value, 'at most 1 hour');
  return ms;
}

/** The maximum time that checks wait for others, in milliseconds. */
function gatherMs(gather: RateLimitModuleOptions['gather'], timeoutMs: number): number {
  if (gather === undefined || gather === false) return 0;
  if (gather === true) return USUAL_GATHER_MS;
  const ms = milliseconds(gather);
  if (ms === undefined || ms < 1 || ms > MAX_GATHER_MS || 2 * ms > timeoutMs) {
    throw wrong('gather', gather, `true, false or a duration from 1 to ${MAX_GATHER_MS} ms, at most half of 'timeout'`);
  }
  return ms;
}

function sendTimeoutMs(value: RateLimitModuleOptions['sendTimeout'] = '30s'): number {
  if (value === false) return Infinity;
  const ms = longDuration(value);
  if (!(ms > 0)) throw wrong('sendTimeout', value, "a duration such as '30s', more than 0, or false");
  return ms;
}

function wrong(option: string, got: unknown, expected: string, code = codeOfWrong(expected)): RateLimitConfigError {
  return wrongOption(LOCATION, option, got, expected, code);
}

/** With `enforce` each limit keeps its own `mode`. */
function readsShadow(mode = ''): boolean {
  if (!['', 'enforce', 'shadow'].includes(mode))
    throw new RateLimitConfigError(messages.wrongMode(MODE_VARIABLE, mode));
  return mode === 'shadow';
}

const REGIONS_LOCATION = 'RateLimitModule.regions';
const NAME = /^[a-z0-9-]{1,32}$/i;

/** The maximum `timeout`. Units have to be used soon after they were granted. */
const LONGEST_TIMEOUT_MS = 250;

function readRegions(given: unknown, hasRedis: boolean, timeoutMs: number): RegionOptions | undefined {
  if (given === undefined) return undefined;
  if (!isObject(given)) throw new RateLimitConfigError(regionMessages.wrong(given));
  refuseUnknown(REGIONS_LOCATION, given, ['name', 'home']);
  const { name, home } = givenOptions(given as unknown as RegionOptions, ['name', 'home']);
  if (typeof name !== 'string' || !NAME.test(name)) throw new RateLimitConfigError(regionMessages.wrongName(name));
  if (!isRedisConnection(home)) throw configError('SLUICE_INVALID_REDIS', wrongRedis(REGIONS_LOCATION, home, 'home'));
  if (!hasRedis) throw configError('SLUICE_MISSING_OPTION', regionMessages.noRedis());
  if (timeoutMs > LONGEST_TIMEOUT_MS) {
    throw configError('SLUICE_INVALID_DURATION', regionMessages.longTimeout(timeoutMs, LONGEST_TIMEOUT_MS));
  }
  return { name, home };
}
