import { isPlainCheck } from './fast-way/plain-checks.js';
import { MAX_WORK } from '../../../engine/limits/compiled-limit.js';
import type { Job } from './jobs.js';

/** Minimum number of checks for which a separate call, next to one of the general way, is worthwhile. */
const LEAST_JOBS = 3;

/**
 * Splits the jobs of a turn into those that the script's fast way decides and all others. Jobs of one identity stay together, in their
 * order.
 */
export function partPlain(jobs: Job[]): Job[][] {
  if (jobs.length === 1) return [jobs];
  const others = jobs.filter(({ check }) => check === undefined || !isPlainCheck(check));
  if (others.length === 0 || jobs.length - others.length < LEAST_JOBS) return [jobs];
  const identities = new Set(others.flatMap(({ counters }) => counters.map(({ identity }) => identity)));
  const left = new Set(others);
  for (const job of jobs) {
    const known = job.counters.filter(({ identity }) => identities.has(identity));
    if (known.length === 0) continue;
    // The job's other identities, and all jobs that share them, would have to be moved as well.
    if (known.length < job.counters.length) return [jobs];
    left.add(job);
  }
  if (jobs.length - left.size < LEAST_JOBS) return [jobs];
  return [jobs.filter((job) => !left.has(job)), jobs.filter((job) => left.has(job))];
}

/** Maximum number of jobs and keys in one call; the rest goes into further calls. Lua can pass at most 8,000 arguments. */
const MAX_JOBS = 500;
const MAX_KEYS = 4000;

/** Splits jobs into calls. */
export function* batches(jobs: readonly Job[]): Generator<Job[]> {
  let batch: Job[] = [];
  let keys = 0;
  let work = 0;
  for (const job of jobs) {
    const isFull = batch.length === MAX_JOBS || keys + job.keys > MAX_KEYS || work + job.work > MAX_WORK;
    if (isFull && batch.length > 0) {
      yield batch;
      batch = [];
      keys = 0;
      work = 0;
    }
    batch.push(job);
    keys += job.keys;
    work += job.work;
  }
  if (batch.length > 0) yield batch;
}

/** Checks per millisecond at which an instance starts to gather them. */
const BUSY = 2;
/** How long it counts before it decides if it is busy. */
const SPAN_MS = 50;

/** Decides if an instance is busy enough that waiting for more checks pays off. */
export class Gathering {
  private count = 0;
  private since = 0;
  private isBusy = false;

  /** @param longestMs the maximum time that checks wait for others; 0 never waits */
  constructor(private readonly longestMs: number) {}

  /** Counts checks that were sent. */
  sent(checks: number): void {
    this.count += checks;
  }

  /** How long checks wait for others from now on, in milliseconds; 0 to not wait. `now` is the process's monotonic clock. */
  waitMs(now: number): number {
    const { longestMs } = this;
    if (longestMs === 0) return 0;
    const elapsed = now - this.since;
    if (elapsed >= SPAN_MS) {
      this.isBusy = this.count >= BUSY * elapsed;
      this.count = 0;
      this.since = now;
    }
    return this.isBusy ? longestMs : 0;
  }
}
