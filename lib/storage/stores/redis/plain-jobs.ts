import { isPlainCheck } from './fast-way/plain-checks.js';
import type { Job } from './jobs.js';

/** The fewest checks that are worth a call of their own beside one of the general way. */
const LEAST_JOBS = 3;

/**
 * Parts the jobs of a turn into those that the script's fast way decides, and all others. Jobs for one identity stay together, in the
 * order in which they came.
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
    // Its other identities, and all jobs that share them, would have to go along.
    if (known.length < job.counters.length) return [jobs];
    left.add(job);
  }
  if (jobs.length - left.size < LEAST_JOBS) return [jobs];
  return [jobs.filter((job) => !left.has(job)), jobs.filter((job) => left.has(job))];
}
