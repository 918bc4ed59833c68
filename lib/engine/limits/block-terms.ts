import { type Duration, microseconds } from '../options/values.js';
import type { LimitSettings } from './limit-settings.js';
import { wrongOption } from '../options/check-options.js';

interface BlockOptions {
  readonly blockFor?: Duration | readonly Duration[] | undefined;
  readonly strike?: boolean | undefined;
  readonly forgetAfter?: Duration | undefined;
}

/** The maximum number of steps. More are certainly a mistake. */
export const MAX_STEPS = 100;

/** The expected value of `blockFor`. */
export const BLOCK_EXPECTED = `a duration of more than 0 and at most 1 year, or 1 to ${MAX_STEPS} durations such as ['1m', '10m', '1h'], each at least as long as the one before`;

/** Returns true if durations can be the steps of blocks. */
export function isStepwise(list: readonly unknown[]): boolean {
  const steps = list.map(microseconds);
  return steps.length > 0 && steps.length <= MAX_STEPS && steps.every((step, index) => step >= (steps[index - 1] ?? 0));
}

/** The terms of `blockFor`, `strike` and `forgetAfter`, whose values have been checked. */
export function blockTerms(
  { blockFor, strike, forgetAfter }: BlockOptions,
  location: string,
): Pick<LimitSettings, 'blockFor' | 'strikes' | 'escalation'> {
  const strikes = strike === true ? { strikes: true } : {};
  if (!isList(blockFor)) {
    if (forgetAfter !== undefined) {
      const expected = "nothing, unless 'blockFor' is a list of durations";
      throw wrongOption(location, 'forgetAfter', forgetAfter, expected);
    }
    return { blockFor: blockFor === undefined ? 0 : microseconds(blockFor), ...strikes };
  }
  const steps = blockFor.map(microseconds);
  return { escalation: { steps, forgetAfter: microseconds(forgetAfter ?? blockFor.at(-1)) }, ...strikes };
}

function isList(value: BlockOptions['blockFor']): value is readonly Duration[] {
  return Array.isArray(value);
}
