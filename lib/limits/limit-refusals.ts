import type { Algorithm } from '../algorithms/algorithm.js';
import { algorithms, type AlgorithmOptions } from '../algorithms/index.js';
import { RateLimitConfigError } from '../errors/errors.js';
import { holdMessages } from '../errors/messages/hold.js';
import { messages } from '../errors/messages/general.js';
import { planMessages } from '../errors/messages/plan.js';
import { withinMessages } from '../errors/messages/within.js';
import type { PrefetchTerms } from './limit-settings.js';

/** Options that another algorithm knows and this one does not are a mistake; others are the caller's to judge. */
export function refuseForeignOptions(options: AlgorithmOptions, algorithm: Algorithm, location: string): void {
  for (const [option, value] of Object.entries(options)) {
    if (value === undefined || algorithm.options.includes(option)) continue;
    const owners = algorithms.withOption(option);
    if (owners.length === 0) continue;
    throw new RateLimitConfigError(messages.foreignOption(location, option, algorithm.name, algorithm.options, owners));
  }
}

/** A block forgets what was used, held or not; and units that were taken for several requests are those of none. */
export function refuseWithHold(location: string, blockFor: number, prefetch: PrefetchTerms | undefined): void {
  if (blockFor > 0) throw new RateLimitConfigError(holdMessages.holdWith(location, 'blockFor'));
  if (prefetch !== undefined) throw new RateLimitConfigError(holdMessages.holdWith(location, 'prefetch'));
}

/** A block forgets what was used, credits, too; and a second version would have credits of its own, which nobody adds. */
export function refuseWithPlan(
  option: string,
  blockFor: number,
  candidate: AlgorithmOptions | undefined,
  location: string,
): void {
  const refuse = (other: string) => {
    throw new RateLimitConfigError(planMessages.planWith(location, option, other));
  };
  if (blockFor > 0) refuse('blockFor');
  if (option === 'credits' && candidate !== undefined) refuse('candidate');
}

/** What windows have besides their quota, and where they begin for a request, is known of one counter alone. */
export function refuseWithin(option: string | undefined, location: string): void {
  if (option !== undefined) throw new RateLimitConfigError(withinMessages.withinWith(location, option));
}
