import { MAX_WORK } from '../work.js';

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
