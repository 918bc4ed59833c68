import { RateLimitArgumentError } from '../../engine/errors/errors.js';
import { bullmqMessages } from '../../engine/errors/messages/bullmq.js';
import { askOf } from '../../app/limiter/limit-checks.js';
import type { Limiter } from '../../app/limiter/limiter.js';
import type { CheckEntry } from '../../engine/limits/counter.js';
import type { LimitedJob } from './job-types.js';
import type { JobLimitSettings } from './read-job-options.js';

/** What one execution of a job asks of its limits. */
export interface JobRequest {
  /** Identifies this execution: one attempt of a job, even if another worker takes it over. */
  readonly id: string;
  /** Whether another worker may have started it and died. */
  readonly hasStalled: boolean;
  /** What the job reserves for a time of its own. */
  readonly reserved: readonly CheckEntry[];
  /** What is asked for when the job starts: windows, and units that are held. */
  readonly asked: readonly CheckEntry[];
}

/** Works out what a job asks of its limits. Rejects with `RateLimitArgumentError`, or with what the user's functions throw. */
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
