import type { LimitDefinition } from '../../app/config/limit-definition.js';
import { type AskOptions, checkAskOptions } from '../../app/limiter/limit-checks.js';
import type { Limiter } from '../../app/limiter/limiter.js';
import { duration, knownOptions } from '../../engine/options/check-options.js';
import type { Duration } from '../../engine/options/values.js';

/** The limits of jobs: the name of a defined limit, a definition, or a list of these. A job starts with units of all of them. */
export type JobLimitsOption = string | LimitDefinition | readonly (string | LimitDefinition)[];

/** How jobs are limited. */
export interface JobLimitOptions<J> {
  /** The key of the counter, usually the tenant: a non-empty string, or a function of the job and the limit's name. */
  key: string | ((job: J, limit: string) => string | Promise<string>);
  /**
   * The cost of a job: a whole number >= 0, or a function of the job and the limit's name that returns one. `concurrency` limits ignore it
   * and use their own cost.
   * @default the limit's own cost, or 1
   */
  cost?: (number | ((job: J, limit: string) => number | Promise<number>)) | undefined;
  /**
   * How often a job checks again while it waits for something that may happen at any time: other jobs release units, or a failed store
   * recovers. Milliseconds or a duration such as `'1s'`, more than 0, at most 1 year.
   * @default '1s'
   */
  recheck?: Duration | undefined;
  /**
   * How long a job's reservation is kept after its time has come. A job that is processed later, for example because the queue
   * was paused, is charged again. Milliseconds or a duration such as `'1d'`, more than 0, at most 1 year.
   * @default '1d'
   */
  keepFor?: Duration | undefined;
}

/** The limiters of a function's jobs, and how they are limited. */
export interface RateLimitedOptions<J> extends JobLimitOptions<J> {
  /** The limits, from `LimiterService.for` or `@InjectLimiter`: one or a list. A job starts with units of all of them. */
  limiter: Limiter | readonly Limiter[];
}

/** Options that have been checked, with defaults filled in. */
export interface JobLimitSettings<J> extends AskOptions<J> {
  readonly recheckMs: number;
  readonly keepMs: number;
}

const KNOWN = ['key', 'cost', 'recheck', 'keepFor'] as const;

/** Reads the options of jobs; `more` names options that the caller reads itself. Throws `RateLimitConfigError`. */
export function readJobOptions<J>(
  given: unknown,
  location: string,
  more: readonly 'limiter'[] = [],
): JobLimitSettings<J> {
  const options = knownOptions<RateLimitedOptions<J>>(location, given, [...more, ...KNOWN]);
  const { key, cost, recheck = '1s', keepFor = '1d' } = options;
  checkAskOptions(location, key, cost, 'a function of the job');
  const milliseconds = (option: string, value: unknown) => duration(location, option, value) / 1000;
  return {
    location,
    key,
    cost,
    recheckMs: milliseconds('recheck', recheck),
    keepMs: milliseconds('keepFor', keepFor),
  };
}
