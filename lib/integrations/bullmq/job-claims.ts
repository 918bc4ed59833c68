import { askOf } from '../../app/limiter/limit-checks.js';
import type { Limiter } from '../../app/limiter/limiter.js';
import { RateLimitArgumentError } from '../../engine/errors/errors.js';
import { bullmqMessages } from '../../engine/errors/messages/bullmq.js';
import type { CheckEntry } from '../../engine/limits/counter.js';
import { MAX_INTERVAL_MS } from '../../engine/options/values.js';
import type { Refund, Store, StoreDecision } from '../../storage/stores/store.js';
import type { JobLimitSettings } from './job-limit-options.js';
import type { LimitedJob } from './job-types.js';

/** The units that one execution of a job needs. */
export interface JobRequest {
  /** Identifies this execution: one attempt of a job, even if another worker takes it over. */
  readonly id: string;
  /** True if another worker may have started the job and died. */
  readonly hasStalled: boolean;
  /** The units that the job reserves for a later time. */
  readonly reserved: readonly CheckEntry[];
  /** The units that are checked when the job starts: those of windows and of limits that hold units. */
  readonly asked: readonly CheckEntry[];
}

/** Works out the units that a job needs. Rejects with `RateLimitArgumentError` or with the error of a function of the app. */
export async function requestOf<J extends LimitedJob>(
  job: J,
  limiters: readonly Limiter[],
  settings: JobLimitSettings<J>,
): Promise<JobRequest> {
  const { id, queueQualifiedName, timestamp, attemptsMade, stalledCounter = 0 } = job;
  if (id === undefined) throw new RateLimitArgumentError(bullmqMessages.noId(settings.location));
  const entries: CheckEntry[] = [];
  for (const limiter of limiters) {
    const { identity, cost } = await askOf(limiter.rule, settings, () => job);
    const { rule } = limiter;
    const limit = rule.usualLimit(identity);
    if (!limit.off) entries.push({ limit, identity, cost, priority: rule.fixedPriority });
  }
  return {
    id: JSON.stringify([queueQualifiedName, id, timestamp, attemptsMade]),
    hasStalled: stalledCounter > 0,
    reserved: entries.filter(canReserve),
    asked: entries.filter((entry) => !canReserve(entry)),
  };
}

function canReserve({ limit: { algorithm } }: CheckEntry): boolean {
  return algorithm.reservation !== undefined || algorithm.queue !== undefined;
}

export interface JobWait {
  readonly entry: CheckEntry;
  /** Milliseconds; `Infinity` if it can never start. */
  readonly ms: number;
  /** True if the job has just reserved its time and took nothing else. */
  readonly isNew?: boolean;
}

/** The units that jobs have reserved. They are kept in the store, so they outlive the worker. */
export class JobClaims {
  constructor(
    private readonly store: Store,
    private readonly keepMs: number,
  ) {}

  /**
   * Reserves the units of a job, unless it has already done so. Returns how long to wait before the job can start or check again;
   * `undefined` if its time has come. With several limits, the one with the longest wait is reserved first, and the others once that wait
   * is over: units reserved earlier would be used too late.
   */
  async claim({ id, reserved }: JobRequest): Promise<JobWait | undefined> {
    const [only] = reserved;
    if (reserved.length === 1) {
      const said = await this.ask(only!, id);
      const wait = waitOf(only!, said);
      return wait && { ...wait, isNew: said.allowed && said.wasClaimed !== true };
    }
    const looks = reserved.map(async (entry) => {
      const said = await this.ask(entry, id, true);
      return { entry, said, ms: waitOf(entry, said)?.ms ?? 0 };
    });
    const waits = await Promise.all(looks);
    waits.sort((one, other) => other.ms - one.ms);
    const [longest] = waits;
    if (longest?.ms === Infinity) return longest;
    const claimed = waits.find(({ said, ms }) => said.wasClaimed === true && ms > 0);
    if (claimed !== undefined) return claimed;
    for (const { entry, said } of waits) {
      const wait = said.wasClaimed === true ? undefined : waitOf(entry, await this.ask(entry, id));
      if (wait !== undefined) return wait;
    }
    return undefined;
  }

  /** Replaces a reservation that the job was too late to use. Returns the wait for the new one, or for the room that it needs. */
  async claimAnew({ id }: JobRequest, late: JobWait): Promise<JobWait> {
    const { entry } = late;
    await this.release({ id, reserved: [entry] }, true);
    const wait = waitOf(entry, await this.ask(entry, id));
    return wait !== undefined && wait.ms > late.ms ? wait : late;
  }

  /** Ends the reservations of a job that has used its units, together with the given other claims. */
  async spend(request: JobRequest, others: readonly Refund[]): Promise<void> {
    await this.release(request, true, others);
  }

  /** Returns units that could not be used yet. */
  async giveBack(request: JobRequest): Promise<void> {
    await this.release(request, false);
  }

  private async release(
    { id, reserved }: Pick<JobRequest, 'id' | 'reserved'>,
    isSpent: boolean,
    others: readonly Refund[] = [],
  ): Promise<void> {
    if (reserved.length === 0) return;
    const claim = { id, isSpent };
    const own = reserved.map(({ limit, identity, cost: units }) => ({ limit, identity, units, claim }));
    await this.store.refund([...own, ...others]);
  }

  private ask(entry: CheckEntry, id: string, looks = false): Promise<StoreDecision> {
    const claim = { id, keepMs: this.keepMs, looks };
    return this.store.reserve({ ...entry, maxWaitMs: MAX_INTERVAL_MS, claim });
  }
}

function waitOf(entry: CheckEntry, { allowed, delayMs, retryAfterMs }: StoreDecision): JobWait | undefined {
  const ms = entry.limit.shadow ? 0 : allowed ? delayMs : retryAfterMs;
  return ms === 0 ? undefined : { entry, ms };
}
