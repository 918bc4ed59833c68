import { regionMessages } from '../../engine/errors/messages/redis.js';
import { RateLimitConfigError } from '../../engine/errors/errors.js';
import { refuseUnknown } from '../../engine/options/check-options.js';
import { givenOptions, isObject } from '../../engine/options/values.js';
import { isRedisConnection, wrongRedis } from './redis-option.js';
import type { RegionOptions } from './region-options.js';

const LOCATION = 'RateLimitModule.regions';
const NAME = /^[a-z0-9-]{1,32}$/i;

/** The maximum `timeout`. Units have to be used soon after they were granted. */
const LONGEST_TIMEOUT_MS = 250;

/** Checks the option `regions`. Throws `RateLimitConfigError`. */
export function readRegions(given: unknown, hasRedis: boolean, timeoutMs: number): RegionOptions | undefined {
  if (given === undefined) return undefined;
  if (!isObject(given)) throw new RateLimitConfigError(regionMessages.wrong(given));
  refuseUnknown(LOCATION, given, ['name', 'home']);
  const { name, home } = givenOptions(given as unknown as RegionOptions, ['name', 'home']);
  if (typeof name !== 'string' || !NAME.test(name)) throw new RateLimitConfigError(regionMessages.wrongName(name));
  if (!isRedisConnection(home))
    throw new RateLimitConfigError(wrongRedis(LOCATION, home, 'home'), { code: 'SLUICE_INVALID_REDIS' });
  if (!hasRedis) throw new RateLimitConfigError(regionMessages.noRedis(), { code: 'SLUICE_MISSING_OPTION' });
  if (timeoutMs > LONGEST_TIMEOUT_MS) {
    throw new RateLimitConfigError(regionMessages.longTimeout(timeoutMs, LONGEST_TIMEOUT_MS), {
      code: 'SLUICE_INVALID_DURATION',
    });
  }
  return { name, home };
}
