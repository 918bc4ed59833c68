import { duration, refuseUnknown } from '../../engine/options/check-options.js';
import { givenOptions } from '../../engine/options/values.js';
import { isRecord } from '../../app/config/module-option-checks.js';
import { RateLimitConfigError } from '../../engine/errors/errors.js';
import { messages } from '../../engine/errors/messages/general.js';
import { isCost } from '../../engine/limits/arguments.js';
import type { JobLimitOptions } from './job-limit-options.js';

/** Options that have been checked, with defaults filled in. */
export interface JobLimitSettings<J> extends Pick<JobLimitOptions<J>, 'key' | 'cost'> {
  /** Where they were given, for messages. */
  readonly location: string;
  readonly recheckMs: number;
  readonly keepMs: number;
}

const KNOWN = ['key', 'cost', 'recheck', 'keepFor'] as const;

/** Reads the options of jobs; `more` names options that the caller reads itself. Throws `RateLimitConfigError`. */
export function readJobOptions<J>(given: unknown, location: string, more: readonly string[] = []): JobLimitSettings<J> {
  if (!isRecord(given) || Array.isArray(given)) throw new RateLimitConfigError(messages.notOptions(location, given));
  const known: readonly string[] = [...more, ...KNOWN];
  refuseUnknown(location, given, known);
  const { key, cost, recheck = '1s', keepFor = '1d' } = givenOptions<Partial<JobLimitOptions<J>>>(given, KNOWN);
  const wantsKey = 'a string that is not empty, or a function of the job';
  if (key === undefined)
    throw new RateLimitConfigError(messages.missingOption(location, 'key', wantsKey), {
      code: 'SLUICE_MISSING_OPTION',
    });
  if (typeof key !== 'function' && (typeof key !== 'string' || key === '')) {
    throw new RateLimitConfigError(messages.wrongOption(location, 'key', key, wantsKey));
  }
  if (cost !== undefined && typeof cost !== 'function' && !isCost(cost)) {
    const expected = 'a whole number >= 0, or a function of the job';
    throw new RateLimitConfigError(messages.wrongOption(location, 'cost', cost, expected));
  }
  const milliseconds = (option: string, value: unknown) => duration(location, option, value) / 1000;
  return {
    location,
    key,
    ...(cost !== undefined && { cost }),
    recheckMs: milliseconds('recheck', recheck),
    keepMs: milliseconds('keepFor', keepFor),
  };
}
