import { RateLimitArgumentError } from '../errors/errors.js';
import { bullmqMessages } from '../errors/messages/bullmq.js';
import { askOf } from '../limiter/limit-ask.js';
import type { Limiter } from '../limiter/limiter.js';
import type { CheckEntry } from '../limits/counter.js';
import type { LimitedJob } from './job-types.js';
import type { JobLimitSettings } from './read-job-options.js';

/** What one execution of a job asks of its limits. */
export interface JobRequest {
  /** Tells this execution from all others: an attempt of a job, also if another worker takes it over. */
  readonly id: string;
  /** Whether another worker may have started it before that died. */
  readonly hasStalled: boolean;
  /** What is reserved for a time of the job's own. */
  readonly reserved: readonly CheckEntry[];
  /** What is asked for when the job starts: windows, and units that are held. */
  readonly asked: readonly CheckEntry[];
}

/** Finds out what a job asks of its limits. Rejects with `RateLimitArgumentError`, and as the user's functions do. */
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
