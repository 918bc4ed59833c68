import type { JobRequest } from './job-request.js';
import type { LimitedJob } from './job-types.js';

/** The most jobs to remember; the one that was delayed first is forgotten first. */
const MAX_JOBS = 10_000;

/** The jobs that this process has delayed, with what they have reserved. */
export class DelayedJobs {
  private readonly requests = new Map<string, JobRequest>();

  add({ queueQualifiedName, id }: LimitedJob, request: JobRequest): void {
    const key = keyOf(queueQualifiedName, id!);
    this.requests.delete(key);
    this.requests.set(key, request);
    if (this.requests.size > MAX_JOBS) this.requests.delete(this.requests.keys().next().value!);
  }

  /** Forgets a job, and returns what it has reserved. */
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
