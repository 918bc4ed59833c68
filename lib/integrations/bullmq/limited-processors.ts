import { Inject } from '@nestjs/common';
import type { LimitDefinition } from '../../app/config/limit-definition.js';
import { listedLimits } from '../../app/limiter/limit-checks.js';
import { Limiter } from '../../app/limiter/limiter.js';
import { configError, RateLimitConfigError } from '../../engine/errors/errors.js';
import { bullmqMessages } from '../../engine/errors/messages/bullmq.js';
import { LimiterService } from '../../nest/limiter.service.js';
import {
  type JobLimitOptions,
  type JobLimitsOption,
  type RateLimitedOptions,
  readJobOptions,
} from './job-limit-options.js';
import { JobLimits } from './job-limits.js';
import type { AnyJob, JobProcessor, JobUnits, LimitedJob, LimitedProcessor } from './job-types.js';
import { getOrMake } from '../../engine/util/objects.js';

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

/** Where Nest injects the service into processors. */
const SERVICE = Symbol('nestjs-sluice:LimiterService');
/** The metadata key of the limits of a processor's jobs. */
const LIMITS = Symbol('nestjs-sluice:JobLimits');
/** The metadata key of the names of these limits, for lists of routes. */
const JOB_LIMITS = 'nestjs-sluice:job-limits';

interface LimitedHost {
  [SERVICE]?: LimiterService;
  [LIMITS]?: (host: LimitedHost) => JobLimits<LimitedJob>;
  process?: JobProcessor<LimitedJob, unknown>;
  onModuleInit?: () => unknown;
}

/**
 * Limits the jobs of a `@Processor` of `@nestjs/bullmq`. Each job reserves a time of its own, is delayed until then, and is
 * processed with the units of all limits. A job that a limit can never let start fails, and is not retried. Throws
 * `RateLimitConfigError`; for the limits, when the app starts.
 *
 * @example
 * ```ts
 * @Processor('sync')
 * @JobRateLimit('shopify', { key: (job) => `shop:${job.data.shop}` })
 * export class SyncProcessor extends WorkerHost {}
 * ```
 * @param limits the name of a defined limit, a definition, or a list of these
 * @param options how jobs are limited
 */
export function JobRateLimit<J extends LimitedJob = AnyJob>(
  limits: JobLimitsOption,
  options: JobLimitOptions<J>,
): ClassDecorator {
  return (target) => {
    const location = `@JobRateLimit of ${target.name}`;
    const given = listedLimits(limits, location);
    Reflect.defineMetadata(JOB_LIMITS, given.map(nameOf), target);
    const settings = readJobOptions<LimitedJob>(options, location);
    const host = target.prototype as LimitedHost;
    const { process, onModuleInit } = host;
    if (typeof process !== 'function') throw new RateLimitConfigError(bullmqMessages.noProcess(location));
    // Request-scoped processors are made for each job; the limits belong to the app.
    const ofApps = new WeakMap<LimiterService, JobLimits<LimitedJob>>();
    const find = ({ [SERVICE]: service }: LimitedHost): JobLimits<LimitedJob> => {
      if (service === undefined) throw configError('SLUICE_NOT_INJECTED', bullmqMessages.noService(location));
      return getOrMake(ofApps, service, () => {
        const limiters = given.map((limit) => service.declared(limit, location));
        return new JobLimits(limiters, settings);
      });
    };
    Inject(LimiterService)(host, SERVICE);
    host[LIMITS] = find;
    host.process = function (this: LimitedHost, job, token, signal) {
      return find(this).run(job, token, () => process.call(this, job, token, signal));
    };
    Object.defineProperty(host.process, 'length', { value: process.length });
    host.onModuleInit = function (this: LimitedHost) {
      find(this);
      return onModuleInit?.call(this);
    };
  };
}

/** The units that jobs of a processor with `@JobRateLimit` have reserved. Throws `RateLimitConfigError`. */
export function jobLimitsOf<J extends LimitedJob = AnyJob>(processor: object): JobUnits<J> {
  const { [LIMITS]: find } = processor as LimitedHost;
  if (find === undefined) throw new RateLimitConfigError(bullmqMessages.notLimited(processor));
  return find(processor);
}

function nameOf(limit: string | LimitDefinition): string {
  return typeof limit === 'string' ? limit : (limit.name ?? limit.algo);
}
