import { Inject } from '@nestjs/common';
import { RateLimitConfigError } from '../../engine/errors/errors.js';
import { bullmqMessages } from '../../engine/errors/messages/bullmq.js';
import { LimiterService } from '../../nest/limiter.service.js';
import type { LimitDefinition } from '../../app/config/limit-definition.js';
import { listedLimits } from '../../app/limiter/limit-checks.js';
import { JobLimits } from './job-limits.js';
import type { JobLimitOptions, JobLimitsOption } from './job-limit-options.js';
import type { AnyJob, LimitedJob, JobProcessor, JobUnits } from './job-types.js';
import { readJobOptions } from './read-job-options.js';

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
      if (service === undefined)
        throw new RateLimitConfigError(bullmqMessages.noService(location), { code: 'SLUICE_NOT_INJECTED' });
      let found = ofApps.get(service);
      if (found === undefined) {
        const limiters = given.map((limit) => service.declared(limit, location));
        ofApps.set(service, (found = new JobLimits(limiters, settings)));
      }
      return found;
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
