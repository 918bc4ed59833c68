import { isPlainCheck } from './fast-way/plain-checks.js';
import { MAX_WORK } from '../work.js';
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

/** The size by which calls are limited. */
interface Sized {
  readonly keys: number;
  readonly work: number;
}

/** The most jobs and keys of one call; more are sent in further calls. Lua can pass no more than 8,000 arguments. */
const MAX_JOBS = 500;
const MAX_KEYS = 4000;

/** Splits jobs into calls. */
export function* batches<J extends Sized>(jobs: readonly J[]): Generator<J[]> {
  let batch: J[] = [];
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

/** An instance gathers checks while it is asked this many a millisecond or more. */
const BUSY = 2;
/** How long it counts before it decides whether it is busy. */
const SPAN_MS = 50;

/** Decides whether an instance is asked often enough that waiting for more checks pays. */
export class Gathering {
  private count = 0;
  private since = 0;
  private isBusy = false;

  /** @param longestMs how long checks wait for others at most; 0 never waits */
  constructor(private readonly longestMs: number) {}

  /** Counts checks that were sent. */
  sent(checks: number): void {
    this.count += checks;
  }

  /** How long checks wait from now on for others, in milliseconds; 0 if not at all. `now` is the process's monotonic clock. */
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
