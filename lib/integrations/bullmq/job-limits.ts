import { setTimeout as sleep } from 'node:timers/promises';
import { isRecord } from '../../engine/util/objects.js';
import { leasedResult } from '../../app/limiter/caller-answer.js';
import type { Lease } from '../../app/limiter/lease.js';
import { refuseWrongList } from '../../app/limiter/limit-checks.js';
import type { Limiter } from '../../app/limiter/limiter.js';
import { RateLimitArgumentError, RateLimitStoreError } from '../../engine/errors/errors.js';
import { logger, OnceLogger } from '../../engine/errors/logger.js';
import { bullmqMessages } from '../../engine/errors/messages/bullmq.js';
import type { CheckEntry } from '../../engine/limits/counter.js';
import { isRefusal } from '../../engine/limits/decision.js';
import { MAX_INTERVAL_MS } from '../../engine/options/values.js';
import { decidedEnforced } from '../../storage/stores/decide.js';
import { chargeOf } from '../../storage/stores/store-decision.js';
import type { Layer } from '../../storage/stores/layers/store-layer.js';
import type { Refund, StoreDecision } from '../../storage/stores/store.js';
import { JobClaims, type JobRequest, type JobWait, requestOf } from './job-claims.js';
import type { JobLimitSettings } from './job-limit-options.js';
import type { JobEvents, JobUnits, LimitedJob } from './job-types.js';

/** The longest wait inside a worker, in milliseconds. */
const HOLD_MS = 250;

/**
 * Counts when jobs start, in separate counters from those that decide when they may start. BullMQ puts a job whose time has come behind all
 * waiting jobs, so late jobs would otherwise start all at once. A job that is on time always fits, because the reserved times obey the
 * limit. If its worker dies, the job keeps its units.
 */
class JobStarts {
  constructor(
    private readonly store: Layer,
    private readonly keepMs: number,
  ) {}

  /**
   * Takes the units that a job needs to start, and waits for them. Returns their refunds. If the job is too late, returns the limit without
   * room and the wait for it.
   */
  async take({ id, reserved, hasStalled }: JobRequest, holdMs = HOLD_MS): Promise<Refund[] | JobWait> {
    const taken: Refund[] = [];
    for (const entry of reserved) {
      if (entry.limit.shadow) continue;
      let answer = await this.reserve(entry, id, holdMs);
      if (answer.wasClaimed === true && answer.delayMs === 0 && !hasStalled) {
        // The reply that granted it was lost, and its time has passed. Other jobs may be in the same situation and would start now.
        await this.store.refund([claimOf(entry, id)]);
        answer = await this.reserve(entry, id, holdMs);
      }
      if (!answer.allowed) {
        await this.giveBack(taken);
        return { entry, ms: answer.retryAfterMs };
      }
      if (answer.delayMs > 0) await sleep(Math.ceil(answer.delayMs));
      taken.push(claimOf(entry, id));
      if (answer.wasClaimed !== true) taken.push({ ...chargeOf(entry, answer), ofStarts: true });
    }
    return taken;
  }

  async giveBack(taken: readonly Refund[]): Promise<void> {
    if (taken.length > 0) await this.store.refund(taken);
  }

  /** The refunds that end the claims of a job after its start. */
  ends({ id, reserved }: JobRequest): Refund[] {
    return reserved.filter(({ limit }) => !limit.shadow).map((entry) => claimOf(entry, id));
  }

  /** A queue that is full right now usually has room a moment later. */
  private async reserve(entry: CheckEntry, id: string, maxWaitMs: number): Promise<StoreDecision> {
    const claim = { id, keepMs: this.keepMs };
    for (;;) {
      const answer = await this.store.reserve({ ...entry, maxWaitMs, claim, ofStarts: true });
      if (answer.allowed || answer.retryAfterMs > maxWaitMs) return answer;
      await sleep(Math.ceil(answer.retryAfterMs));
    }
  }
}

/** Ends a claim. This returns no units: a ticket returns units that could already be used. */
function claimOf({ limit, identity, cost: units }: CheckEntry, id: string): Refund {
  return { limit, identity, units, claim: { id, isSpent: true }, ofStarts: true };
}

/**
 * Signals to a BullMQ worker that the job was delayed, or that it fails for good and isn't retried. Workers recognize the error by its name,
 * no matter which copy of BullMQ threw it.
 */
function errorForWorker(name: 'DelayedError' | 'UnrecoverableError', message: string): Error {
  return Object.assign(new Error(message), { name });
}

/** Maximum number of delayed jobs to remember. The job that was delayed first is evicted first. */
const MAX_JOBS = 10_000;

/** The jobs that this process has delayed, and their reservations. */
class DelayedJobs {
  private readonly requests = new Map<string, JobRequest>();

  add({ queueQualifiedName, id }: LimitedJob, request: JobRequest): void {
    const key = keyOf(queueQualifiedName, id!);
    this.requests.delete(key);
    this.requests.set(key, request);
    if (this.requests.size > MAX_JOBS) this.requests.delete(this.requests.keys().next().value!);
  }

  take(queue: string, id: string): JobRequest | undefined {
    const key = keyOf(queue, id);
    const request = this.requests.get(key);
    this.requests.delete(key);
    return request;
  }
}

function keyOf(queue: string, id: string): string {
  return `${queue}\n${id}`;
}

const log = new OnceLogger(logger);

/** A wait this short is over before BullMQ could delay the job. BullMQ's clock may also be this much ahead of the store's clock. */
const SHORT_MS = 10;
/** If a job has waited longer than this, many jobs are waiting, or no worker was running. */
const BACKLOG_MS = 1000;
/** BullMQ truncates times to whole milliseconds. */
const CUT_MS = 1;

/** Starts jobs when their limits have room, and delays them until then. */
export class JobLimits<J extends LimitedJob> implements JobUnits<J> {
  private readonly claims: JobClaims;
  private readonly starts: JobStarts;
  private readonly delayed = new DelayedJobs();

  /** Throws `RateLimitConfigError` if a limit is listed twice or is shared by tenants. */
  constructor(
    /** At least one, all from one app. */
    private readonly limiters: readonly Limiter[],
    private readonly settings: JobLimitSettings<J>,
  ) {
    refuseWrongList(
      limiters.map(({ rule }) => rule),
      settings.location,
    );
    this.claims = new JobClaims(limiters[0]!.store, settings.keepMs);
    this.starts = new JobStarts(limiters[0]!.store, settings.keepMs);
  }

  /**
   * Runs a job once it has the units of all of its limits. Otherwise delays the job and throws the error that reports the delay to the
   * worker.
   */
  async run<R>(job: J, token: string | undefined, work: () => R | Promise<R>): Promise<R> {
    const request = await requestOf(job, this.limiters, this.settings);
    const leases = await this.enter(job, token, request);
    this.delayed.take(job.queueQualifiedName, job.id!);
    try {
      return await work();
    } catch (error) {
      await restorePriority(job).catch(() => undefined);
      throw error;
    } finally {
      await Promise.all([...leases.map((lease) => lease.release()), this.spend(request)]);
    }
  }

  async giveBack(job: J): Promise<void> {
    if (!isRecord(job)) throw new RateLimitArgumentError(bullmqMessages.noJob(this.settings.location, job));
    await this.claims.giveBack(await requestOf(job, this.limiters, this.settings));
  }

  follow(events: JobEvents): void {
    if (!isEvents(events)) throw new RateLimitArgumentError(bullmqMessages.noEvents(this.settings.location, events));
    const ended = ({ jobId }: { jobId: string }) => {
      const request = this.delayed.take(events.qualifiedName, jobId);
      // If this fails, the reserved time passes unused.
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

  /** Returns the leases of the job, or how long it has to wait. */
  private async take(job: J, token: string | undefined, request: JobRequest): Promise<Lease[] | JobWait> {
    try {
      const wait = await this.claims.claim(request);
      if (wait === undefined) return await this.start(request);
      return wait.isNew === true && hasWaited(job) ? await this.overtake(request, wait) : wait;
    } catch (error) {
      if (!(error instanceof RateLimitStoreError)) throw error;
      const { location, recheckMs } = this.settings;
      log.error(bullmqMessages.storeDenies(location, job.queueQualifiedName, recheckMs), error.message);
      return this.delay(job, token, recheckMs, request);
    }
  }

  /** Starts a job whose time has come. If it is so late that others have started at its time, it has to reserve again. */
  private async start(request: JobRequest): Promise<Lease[] | JobWait> {
    const taken = await this.starts.take(request);
    return Array.isArray(taken) ? this.finish(request, taken) : this.claims.claimAnew(request, taken);
  }

  /**
   * Starts a job that has waited long at the time that another job reserved. Jobs whose time has come are still queued behind it and will
   * reserve a new time.
   */
  private async overtake(request: JobRequest, wait: JobWait): Promise<Lease[] | JobWait> {
    const taken = await this.starts.take(request, 0);
    if (!Array.isArray(taken)) return wait;
    await this.claims.giveBack(request);
    return this.finish(request, taken);
  }

  /** Takes the units that a job needs in addition to its reservation. */
  private async finish(request: JobRequest, start: readonly Refund[]): Promise<Lease[] | JobWait> {
    const taken = await this.ask(request.asked);
    if (!Array.isArray(taken)) await this.starts.giveBack(start);
    return taken;
  }

  /** Checks all limits that can't be reserved, in one call. */
  private async ask(entries: readonly CheckEntry[]): Promise<Lease[] | JobWait> {
    if (entries.length === 0) return [];
    const { store, queues } = this.limiters[0]!;
    const answers = await decidedEnforced(store, { entries });
    const { allowed, decisions } = leasedResult(answers, entries, store, queues);
    if (allowed) return decisions.flatMap(({ lease }) => lease?.keepAlive() ?? []);
    const waits = entries.flatMap((entry, index): JobWait[] => {
      const decision = decisions[index]!;
      if (!isRefusal(entry.limit, decision)) return [];
      const { retryAfterMs } = decision;
      const isHeld = entry.limit.algorithm.leases !== undefined && retryAfterMs < Infinity;
      return [{ entry, ms: isHeld ? Math.min(retryAfterMs, this.settings.recheckMs) : retryAfterMs }];
    });
    return waits.reduce((longest, wait) => (wait.ms > longest.ms ? wait : longest));
  }

  private async delay(job: J, token: string | undefined, ms: number, request: JobRequest): Promise<never> {
    const { location } = this.settings;
    if (token === undefined) throw new RateLimitArgumentError(bullmqMessages.noToken(location));
    this.delayed.add(job, request);
    const delayMs = Math.ceil(Math.min(ms, MAX_INTERVAL_MS)) + CUT_MS;
    await takePriority(job);
    await job.moveToDelayed(Date.now() + delayMs, token);
    throw errorForWorker('DelayedError', bullmqMessages.delayed(delayMs));
  }

  private async refuse(request: JobRequest, { limit, cost }: CheckEntry): Promise<never> {
    await this.claims.giveBack(request).catch(() => undefined);
    const { location } = this.settings;
    throw errorForWorker('UnrecoverableError', bullmqMessages.neverFits(location, limit.name, cost, limit.quota));
  }

  /** If this fails, the reservation expires on its own. */
  private async spend(request: JobRequest): Promise<void> {
    try {
      await this.claims.spend(request, this.starts.ends(request));
    } catch (error) {
      if (!(error instanceof RateLimitStoreError)) throw error;
    }
  }
}

/** Returns true if arriving jobs have waited so long that jobs whose time has come are queued behind them. */
function hasWaited({ timestamp, opts: { delay = 0 }, priority = 0 }: LimitedJob): boolean {
  return priority === 0 && Date.now() - timestamp - delay > BACKLOG_MS;
}

/**
 * Returns true for an emitter that gets the events of all jobs of a queue. A `Queue`, which adds jobs, only emits those of its own process.
 */
function isEvents(given: unknown): boolean {
  return isRecord(given) && typeof given['on'] === 'function' && !('add' in given);
}

/**
 * Moves a delayed job ahead of all waiting jobs with a priority once its time has come. BullMQ takes jobs without a priority first, so the
 * job would start late behind the others.
 */
async function takePriority(job: LimitedJob): Promise<void> {
  if ((job.priority ?? 0) > 0) await job.changePriority?.({ priority: 0 });
}

/** Restores a job's own priority for its next attempt. */
async function restorePriority(job: LimitedJob): Promise<void> {
  const { priority = 0 } = job.opts;
  if (priority > 0 && job.priority === 0) await job.changePriority?.({ priority });
}
