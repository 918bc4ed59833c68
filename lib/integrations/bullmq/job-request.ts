import { RateLimitArgumentError } from '../../engine/errors/errors.js';
import { bullmqMessages } from '../../engine/errors/messages/bullmq.js';
import { askOf } from '../../app/limiter/limit-checks.js';
import type { Limiter } from '../../app/limiter/limiter.js';
import type { CheckEntry } from '../../engine/limits/counter.js';
import type { LimitedJob } from './job-types.js';
import type { JobLimitSettings } from './read-job-options.js';

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
