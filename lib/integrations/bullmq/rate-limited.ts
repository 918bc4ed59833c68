import { RateLimitConfigError } from '../../engine/errors/errors.js';
import { bullmqMessages } from '../../engine/errors/messages/bullmq.js';
import { Limiter } from '../../app/limiter/limiter.js';
import { JobLimits } from './job-limits.js';
import type { RateLimitedOptions } from './job-limit-options.js';
import type { JobProcessor, LimitedJob, LimitedProcessor } from './job-types.js';
import { readJobOptions } from './read-job-options.js';

const LOCATION = 'rateLimited';

/**
 * Limits the jobs of a `Worker` of BullMQ: `new Worker('sync', rateLimited(process, { limiter, key }), …)`. Each job reserves a
 * time of its own, is delayed until then, and is processed with the units of all limits. A job that a limit can never let start
 * fails, and is not retried. Throws `RateLimitConfigError`.
 *
 * @param processor the function that processes jobs
 * @param options the limits, and how jobs are limited
 */
export function rateLimited<J extends LimitedJob, R>(
  processor: JobProcessor<J, R>,
  options: RateLimitedOptions<J>,
): LimitedProcessor<J, R> {
  if (typeof processor !== 'function') throw new RateLimitConfigError(bullmqMessages.noProcessor(processor));
  const settings = readJobOptions<J>(options, LOCATION, ['limiter']);
  const limits = new JobLimits<J>(limitersOf(options.limiter), settings);
  const limited = (job: J, token?: string, signal?: AbortSignal) =>
    limits.run(job, token, () => processor(job, token, signal));
  // A worker passes a signal to functions that take three arguments.
  Object.defineProperty(limited, 'length', { value: processor.length });
  return Object.assign(limited, {
    giveBack: (job: J) => limits.giveBack(job),
    follow: limits.follow.bind(limits),
  });
}

function limitersOf(given: unknown): readonly Limiter[] {
  const limiters: readonly unknown[] = Array.isArray(given) ? given : [given];
  if (limiters.length === 0 || !limiters.every((limiter) => limiter instanceof Limiter)) {
    throw new RateLimitConfigError(bullmqMessages.noLimiters(given));
  }
  const stranger = limiters.find(({ store }) => store !== limiters[0]!.store);
  if (stranger === undefined) return limiters;
  throw new RateLimitConfigError(bullmqMessages.limitersOfTwoApps(limiters[0]!.name, stranger.name));
}
