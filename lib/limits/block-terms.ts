import { type Duration, duration } from '../algorithms/options.js';
import { RateLimitConfigError } from '../errors/errors.js';
import { messages } from '../errors/messages/general.js';
import type { LimitSettings } from './compiled-limit.js';

/** How a limit blocks whom it refuses, as users write it. */
interface BlockOptions {
  readonly blockFor?: Duration | readonly Duration[] | undefined;
  readonly forgetAfter?: Duration | undefined;
}

/** More steps than these are a mistake. */
export const MAX_STEPS = 100;

/** What `blockFor` takes. */
export const BLOCK_WANTS = `a duration, or 1 to ${MAX_STEPS} durations such as ['1m', '10m', '1h'], each at least as long as the one before`;

/** Reads a limit's `blockFor` and `forgetAfter`. */
export function blockTerms(
  { blockFor, forgetAfter }: BlockOptions,
  location: string,
): Pick<LimitSettings, 'blockFor' | 'escalation'> {
  if (!isList(blockFor)) {
    if (forgetAfter !== undefined) {
      const wants = "nothing, unless 'blockFor' is a list of durations";
      throw new RateLimitConfigError(messages.wrongOption(location, 'forgetAfter', forgetAfter, wants));
    }
    return { blockFor: blockFor === undefined ? 0 : duration(location, 'blockFor', blockFor) };
  }
  const refuse = (): never => {
    throw new RateLimitConfigError(messages.wrongOption(location, 'blockFor', blockFor, BLOCK_WANTS));
  };
  if (blockFor.length === 0 || blockFor.length > MAX_STEPS) refuse();
  const steps = Array.from(blockFor, (step, index) => duration(location, `blockFor[${index}]`, step));
  if (steps.some((step, index) => step < (steps[index - 1] ?? 0))) refuse();
  const longest = steps.at(-1)!;
  return {
    escalation: {
      steps,
      forgetAfter: forgetAfter === undefined ? longest : duration(location, 'forgetAfter', forgetAfter),
    },
  };
}

function isList(value: BlockOptions['blockFor']): value is readonly Duration[] {
  return Array.isArray(value);
}
