import { isRecord } from '../../app/config/option-checks.js';
import { RateLimitConfigError } from '../../engine/errors/errors.js';
import { messages } from '../../engine/errors/messages/general.js';
import { methodMessages } from '../../engine/errors/messages/app-code.js';
import { isCost } from '../../engine/limits/arguments.js';
import { duration, refuseUnknown } from '../../engine/options/check-options.js';
import { givenOptions } from '../../engine/options/values.js';
import type { LimitedOptions, OnLimit } from './limited-options.js';

const KNOWN = ['key', 'cost', 'onLimit', 'timeout', 'signal'] as const satisfies readonly (keyof LimitedOptions)[];
const ON_LIMIT: readonly unknown[] = ['throw', 'wait', 'skip'] satisfies readonly OnLimit[];

/** Options that have been checked. */
export type LimitedSettings = Omit<LimitedOptions, 'onLimit'> & { readonly onLimit: OnLimit };

/** Reads the options of `@Limited`. Throws `RateLimitConfigError`. */
export function readLimitedOptions(given: unknown, location: string): LimitedSettings {
  if (!isRecord(given) || Array.isArray(given)) throw new RateLimitConfigError(messages.notOptions(location, given));
  refuseUnknown(location, given, KNOWN);
  const options = givenOptions<LimitedOptions>(given, KNOWN);
  const { key, cost, onLimit = 'throw', timeout, signal } = options;
  const refuse = (option: string, value: unknown, expected: string): never => {
    throw new RateLimitConfigError(messages.wrongOption(location, option, value, expected));
  };
  if (key !== undefined && typeof key !== 'function') refuse('key', key, "a function of the method's arguments");
  if (cost !== undefined && typeof cost !== 'function' && !isCost(cost)) {
    refuse('cost', cost, "a whole number >= 0, or a function of the method's arguments");
  }
  if (!ON_LIMIT.includes(onLimit)) refuse('onLimit', onLimit, "'throw', 'wait' or 'skip'");
  if (timeout !== undefined) duration(location, 'timeout', timeout);
  if (signal !== undefined && typeof signal !== 'function') {
    refuse('signal', signal, "a function of the method's arguments that returns an AbortSignal");
  }
  if (onLimit !== 'wait') {
    for (const option of ['timeout', 'signal'] as const) {
      if (options[option] !== undefined)
        throw new RateLimitConfigError(methodMessages.onlyWaits(location, option), { code: 'SLUICE_EXCLUDED_OPTIONS' });
    }
  }
  return { ...options, onLimit };
}
