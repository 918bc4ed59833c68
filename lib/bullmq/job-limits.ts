import { setTimeout as sleep } from 'node:timers/promises';
import { MAX_INTERVAL_MS } from '../algorithms/options.js';
import { bullmqMessages } from '../errors/bullmq-messages.js';
import { RateLimitArgumentError, RateLimitStoreError } from '../errors/errors.js';
import { logger } from '../errors/logger.js';
import { OnceLogger } from '../errors/once-logger.js';
import { CallerAnswers } from '../limiter/caller-answers.js';
import { decideEnforced } from '../limiter/enforced-entries.js';
import type { Lease } from '../limiter/lease.js';
import type { Limiter } from '../limiter/limiter.js';
import { isRefusal } from '../limits/check-result.js';
import type { CheckEntry } from '../limits/counter.js';
import { DelayedJobs } from './delayed-jobs.js';
import { JobClaims, type JobWait } from './job-claims.js';
import { JobDelayedError, UnrecoverableJobError } from './job-errors.js';
import { type JobRequest, requestOf } from './job-request.js';
import type { JobEvents, JobUnits, LimitedJob } from './job-types.js';
import type { JobLimitSettings } from './read-job-options.js';

const log = new OnceLogger(logger);

/** So short a wait is over before BullMQ could have delayed the job, and its clock may be so much ahead of the store's. */
const SHORT_MS = 10;
/** BullMQ cuts times off to whole milliseconds. */
const CUT_MS = 1;

/** Starts jobs when their limits let them, and delays them until then. */
export class JobLimits<J extends LimitedJob> implements JobUnits<J> {
  private readonly claims: JobClaims;
  private readonly delayed = new DelayedJobs();

  constructor(
    /** At least one; all of one app. */
    private readonly limiters: readonly Limiter[],
    private readonly settings: JobLimitSettings<J>,
  ) {
    this.claims = new JobClaims(limiters[0]!.store, settings.keepMs);
  }

  /** Does a job's work with the units of all of its limits; or delays it, and throws what says so to the worker. */
  async run<R>(job: J, token: string | undefined, work: () => R | Promise<R>): Promise<R> {
    const request = await requestOf(job, this.limiters, this.settings);
    const leases = await this.enter(job, token, request);
    this.delayed.take(job.queueQualifiedName, job.id!);
    try {
      return await work();
    } finally {
      await Promise.all([...leases.map((lease) => lease.release()), this.spend(request)]);
    }
  }

  async giveBack(job: J): Promise<void> {
    await this.claims.giveBack(await requestOf(job, this.limiters, this.settings));
  }

  follow(events: JobEvents): void {
    const ended = ({ jobId }: { jobId: string }) => {
      const request = this.delayed.take(events.qualifiedName, jobId);
      // If that fails, the time that was reserved passes unused.
      if (request !== undefined) this.claims.giveBack(request).catch(() => undefined);
    };
    events.on('removed', ended);
    events.on('failed', ended);
  }

  /** Takes the units of all limits. */
  private async enter(job: J, token: string | undefined, request: JobRequest): Promise<readonly Lease[]> {
    for (;;) {
      const taken = await this.take(job, token, request);
      if (Array.isArray(taken)) return taken;
      const { entry, ms } = taken;
      if (ms === Infinity) await this.refuse(request, entry);
      if (ms > SHORT_MS) await this.delay(job, token, ms, request);
      await sleep(ms);
    }
  }

  /** Returns what the job holds, or how long it has to wait. */
  private async take(job: J, token: string | undefined, request: JobRequest): Promise<Lease[] | JobWait> {
    try {
      return (await this.claims.claim(request)) ?? (await this.ask(request.asked));
    } catch (error) {
      if (!(error instanceof RateLimitStoreError)) throw error;
      const { location, recheckMs } = this.settings;
      log.error(bullmqMessages.storeDenies(location, job.queueQualifiedName, recheckMs), error.message);
      return this.delay(job, token, recheckMs, request);
    }
  }

  /** Asks all limits at once that reserve nothing. */
  private async ask(entries: readonly CheckEntry[]): Promise<Lease[] | JobWait> {
    if (entries.length === 0) return [];
    const { store, queues } = this.limiters[0]!;
    const answer = new CallerAnswers(entries, store, queues);
    decideEnforced(store, { entries }, answer);
    const { allowed, decisions } = await answer.promise();
    if (allowed) return decisions.flatMap(({ lease }) => lease?.keepAlive() ?? []);
    const waits = entries.flatMap((entry, index): JobWait[] => {
      const decision = decisions[index]!;
      if (!isRefusal(entry.limit, decision)) return [];
      const { retryAfterMs } = decision;
      const isHeld = entry.limit.algorithm.holding !== undefined && retryAfterMs < Infinity;
      return [{ entry, ms: isHeld ? Math.min(retryAfterMs, this.settings.recheckMs) : retryAfterMs }];
    });
    return waits.reduce((longest, wait) => (wait.ms > longest.ms ? wait : longest));
  }

  private async delay(job: J, token: string | undefined, ms: number, request: JobRequest): Promise<never> {
    const { location } = this.settings;
    if (token === undefined) throw new RateLimitArgumentError(bullmqMessages.noToken(location));
    this.delayed.add(job, request);
    const delayMs = Math.ceil(Math.min(ms, MAX_INTERVAL_MS)) + CUT_MS;
    await job.moveToDelayed(Date.now() + delayMs, token);
    throw new JobDelayedError(bullmqMessages.delayed(delayMs));
  }

  private async refuse(request: JobRequest, { limit, cost }: CheckEntry): Promise<never> {
    await this.claims.giveBack(request).catch(() => undefined);
    const { location } = this.settings;
    throw new UnrecoverableJobError(bullmqMessages.neverFits(location, limit.name, cost, limit.quota));
  }

  /** If that fails, what was reserved is forgotten in time. */
  private async spend(request: JobRequest): Promise<void> {
    try {
      await this.claims.spend(request);
    } catch (error) {
      if (!(error instanceof RateLimitStoreError)) throw error;
    }
  }
}
