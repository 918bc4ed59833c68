import type { LimitedJob } from './job-types.js';

/**
 * Has a job that is delayed come before all that wait with a priority, once its time has come: BullMQ takes those first that have none.
 * Behind them it would start late.
 */
export async function takePriority(job: LimitedJob): Promise<void> {
  if ((job.priority ?? 0) > 0) await job.changePriority?.({ priority: 0 });
}

/** Gives a job its own priority back, for its next attempt. */
export async function restorePriority(job: LimitedJob): Promise<void> {
  const { priority = 0 } = job.opts;
  if (priority > 0 && job.priority === 0) await job.changePriority?.({ priority });
}
