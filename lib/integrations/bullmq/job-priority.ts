import type { LimitedJob } from './job-types.js';

/**
 * Moves a delayed job before all waiting jobs that have a priority, once its time has come: BullMQ takes jobs without a priority
 * first. Behind the others it would start late.
 */
export async function takePriority(job: LimitedJob): Promise<void> {
  if ((job.priority ?? 0) > 0) await job.changePriority?.({ priority: 0 });
}

/** Restores a job's own priority for its next attempt. */
export async function restorePriority(job: LimitedJob): Promise<void> {
  const { priority = 0 } = job.opts;
  if (priority > 0 && job.priority === 0) await job.changePriority?.({ priority });
}
