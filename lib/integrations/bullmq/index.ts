/**
 * Limits BullMQ jobs, for example per tenant.
 * @module nestjs-sluice/bullmq
 */
export { JobRateLimit, jobLimitsOf, rateLimited } from './limited-processors.js';
export type { JobLimitOptions, JobLimitsOption, RateLimitedOptions } from './job-limit-options.js';
export type {
  AnyJob,
  JobEvents,
  JobProcessor,
  JobUnits,
  LimitedJob,
  LimitedJobOptions,
  LimitedProcessor,
} from './job-types.js';
