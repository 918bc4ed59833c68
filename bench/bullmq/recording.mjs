/** What jobs tell of themselves, on a server of its own, with that server's time. */

export const STARTS = 'starts';
export const DELAYS = 'delays';

const RECORD_START = `
local time = redis.call('TIME')
return redis.call('RPUSH', KEYS[1], cjson.encode({ time[1] * 1000000 + time[2], ARGV[1], tonumber(ARGV[2]) }))
`;

/** Records that a job starts: the time, the job, its tenant. */
export async function recordStart(redis, job) {
  await redis.eval(RECORD_START, 1, STARTS, job.id, job.data.tenant);
}

/** Records that a job is not started, but moved to a later time. */
export async function recordDelay(redis, job) {
  await redis.hincrby(DELAYS, job.id, 1);
}
