import type { Duration } from '../algorithms/options.js';
import type { LimitDefinition } from '../config/limit-definition.js';
import type { Limiter } from '../limiter/limiter.js';

/** The limits of jobs: a defined limit's name, a definition, or a list of these. A job starts with units of all of them. */
export type JobLimitsOption = string | LimitDefinition | readonly (string | LimitDefinition)[];

/** How jobs are limited. */
export interface JobLimitOptions<J> {
  /**
   * The key of the counter, any string that is not empty, or a function that gives it of the job and of the limit's name: the tenant,
   * as a rule.
   */
  key: string | ((job: J, limit: string) => string | Promise<string>);
  /**
   * The units of a job: a whole number >= 0, or a function of the job and of the limit's name that returns one. Limits of
   * `concurrency` are asked for their own cost.
   * @default the limit's own cost, or 1
   */
  cost?: number | ((job: J, limit: string) => number | Promise<number>);
  /**
   * The longest delay of a job that waits for what may come at any time: for units that others hold, or for a store that fails.
   * Milliseconds or a duration such as `'1s'`, more than 0, at most 1 year.
   * @default '1s'
   */
  recheck?: Duration;
  /**
   * How long it is known, once its time has come, what a job has reserved. A job that is processed still later, since the queue was
   * paused, is charged again. Milliseconds or a duration such as `'1d'`, more than 0, at most 1 year.
   * @default '1d'
   */
  keepFor?: Duration;
}

/** How the jobs of a function are limited. */
export interface RateLimitedOptions<J> extends JobLimitOptions<J> {
  /** The limits, from `LimiterService.for` or `@InjectLimiter`: one, or a list. A job starts with units of all of them. */
  limiter: Limiter | readonly Limiter[];
}
